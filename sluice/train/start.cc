// How a session starts: environment variables and --sluice-… flags.
#include <charconv>
#include <optional>

#include "sluice/base/environment.h"
#include "sluice/base/strings.h"
#include "sluice/train/ahead_program.h"
#include "sluice/train/session_state.h"

namespace sluice {
namespace start_detail {

const std::vector<std::string>& flags() {
  static const std::vector<std::string> names = {"--sluice-device", "--sluice-plugin", "--sluice-devices",
                                                 "--sluice-strict", "--sluice-eager",  "--sluice-dump"};
  return names;
}

int whole_number(const std::string& what, const std::string& text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    throw Error(Code::kInvalidArgument,
                base::str(what, " must be a whole number above 0, not \"", text, "\""));
  return value;
}

Options from_environment() {
  Options options;
  if (auto device = base::environment("SLUICE_DEVICE")) options.device = *device;
  if (auto devices = base::environment("SLUICE_DEVICES"))
    options.xla.devices = whole_number("SLUICE_DEVICES", *devices);
  options.xla.strict = base::environment_flag("SLUICE_STRICT", options.xla.strict);
  return options;
}

void set(Options& options, const std::string& flag, const std::string& value) {
  if (flag == "--sluice-device") options.device = value;
  if (flag == "--sluice-plugin") options.xla.plugin = value;
  if (flag == "--sluice-devices") options.xla.devices = whole_number(flag, value);
  if (flag == "--sluice-dump") options.xla.dump = value;
  if (flag == "--sluice-strict") options.xla.strict = true;
  if (flag == "--sluice-eager") options.xla.eager = true;
}

// Reads the flags; the arguments that are not ours are counted into `kept` and moved to the front when
// `remove`.
Options parse(int* argc, char** argv, bool remove) {
  Options options = from_environment();
  int kept = 0;
  for (int i = 0; i < *argc; ++i) {
    const std::string argument = argv[i];
    if (i == 0 || !base::starts_with(argument, "--sluice-")) {
      if (remove) argv[kept] = argv[i];
      ++kept;
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    const auto& known = flags();
    if (std::find(known.begin(), known.end(), flag) == known.end()) {
      std::string near = base::nearest(flag, known);
      throw Error(Code::kInvalidArgument,
                  base::str("unknown flag ", flag,
                            near.empty() ? std::string() : base::str("; did you mean ", near, "?")));
    }
    std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    const bool is_switch = flag == "--sluice-strict" || flag == "--sluice-eager";
    if (equals == std::string::npos && !is_switch) {
      if (i + 1 >= *argc) throw Error(Code::kInvalidArgument, base::str(flag, " needs a value"));
      value = argv[++i];
    }
    set(options, flag, value);
  }
  if (remove) {
    *argc = kept;
    argv[kept] = nullptr;
  }
  return options;
}

}  // namespace start_detail

Session start(const Options& options) {
  return Session(std::make_shared<Session::State>(train::compile_instead_of_running(options)));
}
Session start() { return start(start_detail::from_environment()); }
Session start(int argc, char** argv) { return start(start_detail::parse(&argc, argv, /*remove=*/false)); }
Session start(int* argc, char** argv) { return start(start_detail::parse(argc, argv, /*remove=*/true)); }

}  // namespace sluice
