// The start of a session: environment variables and --sluice-… flags.
#include <mutex>
#include <optional>

#include "sluice/base/environment.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/variables.h"
#include "sluice/session/ahead/ahead_program.h"
#include "sluice/session/ahead/remote_programs.h"
#include "sluice/session/device_list.h"
#include "sluice/session/session_state.h"

namespace sluice {
namespace start_detail {

const std::vector<std::string>& flags() {
  static const std::vector<std::string> names = {"--sluice-device", "--sluice-plugin", "--sluice-devices",
                                                 "--sluice-strict", "--sluice-eager",  "--sluice-dump"};
  return names;
}

void set_devices(Options& options, const std::string& what, const std::string& text) {
  sessions::DeviceList list = sessions::parse_devices(what, text);
  options.xla.devices = list.count;
  options.xla.device_ids = std::move(list.ids);
}

Options from_environment() {
  Options options;
  if (auto device = base::environment("SLUICE_DEVICE")) options.device = *device;
  if (auto devices = base::environment("SLUICE_DEVICES")) set_devices(options, "SLUICE_DEVICES", *devices);
  options.status_port = base::environment("SLUICE_STATUS_PORT").value_or("");
  options.profiler_port = base::environment("SLUICE_PROFILER_PORT").value_or("");
  return options;
}

// Returns the value of a flag that may have none, which means on.
bool is_on(const std::string& flag, const std::string& value) {
  const auto on = value.empty() ? std::optional(true) : base::switch_of(value);
  if (!on)
    throw_error(Code::kInvalidArgument, base::str(flag, ": expected on or off, found \"", value, "\""));
  return *on;
}

void set(Options& options, const std::string& flag, const std::string& value) {
  if (flag == "--sluice-device") options.device = value;
  if (flag == "--sluice-plugin") options.xla.plugin = value;
  if (flag == "--sluice-devices") set_devices(options, flag, value);
  if (flag == "--sluice-dump") options.xla.dump = value;
  if (flag == "--sluice-strict") options.xla.strict = is_on(flag, value);
  if (flag == "--sluice-eager") options.xla.eager = is_on(flag, value);
}

// Reads the flags, and counts the other arguments in `kept`; with `remove`, moves those to the front.
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
      throw_error(Code::kInvalidArgument,
                  base::str("unknown flag ", flag,
                            near.empty() ? std::string() : base::str("; did you mean ", near, "?")));
    }
    std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    const bool is_switch = flag == "--sluice-strict" || flag == "--sluice-eager";
    if (equals == std::string::npos && !is_switch) {
      if (i + 1 >= *argc) throw_error(Code::kInvalidArgument, base::str(flag, " needs a value"));
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

// Warns only once, and from one process.
void warn_of_idle_variables(const Session& session) {
  static std::once_flag once;
  if (!session.is_leader()) return;
  std::call_once(once, [] {
    const std::string idle = base::idle_variables();
    if (!idle.empty()) base::warn("environment variables that are set and that nothing here reads:\n", idle);
  });
}

}  // namespace start_detail

Session start(const Options& options) {
  sessions::keep_programs_in_buckets();
  Session session(std::make_shared<Session::State>(sessions::compile_instead_of_running(options)));
  start_detail::warn_of_idle_variables(session);
  return session;
}
Session start() { return start(start_detail::from_environment()); }
Session start(int argc, char** argv) { return start(start_detail::parse(&argc, argv, /*remove=*/false)); }
Session start(int* argc, char** argv) { return start(start_detail::parse(argc, argv, /*remove=*/true)); }

}  // namespace sluice
