#include "sluice/session/ahead/ahead_program.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "sluice/base/environment.h"
#include "sluice/base/error.h"
#include "sluice/base/files/file.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/program/ahead.h"
#include "sluice/pjrt/machine/choose_plugin.h"

namespace sluice::sessions {
namespace ahead_detail {

// What was recorded, and whether more is to come. Threads: the one that records.
struct Recording {
  bool steps = false, goes_on = false;
};
Recording recording;

[[noreturn]] void become_estimate(const std::string& slices) {
  const std::string program = base::environment("SLUICE_PROGRAM").value_or("sluice");
  std::vector<std::string> command = {program,    "estimate",
                                      "--slices", slices,
                                      "--",       std::filesystem::read_symlink("/proc/self/exe").string()};
  const std::string line = base::value_or_throw(base::read_file("/proc/self/cmdline"));
  std::vector<std::string> own = base::split(line, '\0');
  if (!own.empty()) own.pop_back();  // the empty text after the last terminator
  if (!own.empty()) command.insert(command.end(), own.begin() + 1, own.end());
  std::vector<char*> pointers;
  for (std::string& argument : command) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::unsetenv("SLUICE_ESTIMATE");
  std::fflush(nullptr);
  ::execvp(pointers[0], pointers.data());
  throw_error(
      Code::kNotFound,
      base::str("SLUICE_ESTIMATE needs the program `sluice` on PATH, or its path in SLUICE_PROGRAM: cannot "
                "start ",
                program, ": ", std::strerror(errno)));
}

void record_for(const std::string& order, const DeviceOptions& device) {
  int replicas = 0;
  const size_t colon = order.find(':');
  const size_t second = colon == std::string::npos ? colon : order.find(':', colon + 1);
  std::from_chars(order.data(), order.data() + std::min(colon, order.size()), replicas);
  if (replicas < 1 || second == std::string::npos)
    throw_error(Code::kInvalidArgument,
                base::str("SLUICE_AHEAD: expected REPLICAS:KIND:FILE, found ", order));
  init(device);
  // Until the process ends.
  static auto* ahead = new device::Ahead(replicas, /*explicit_nan=*/false,
                                         std::string_view(order).substr(colon + 1, second - colon - 1));
  ahead->on_cut([path = order.substr(second + 1),
                 others = std::set<std::string>()](std::string_view what) mutable {
    const std::string& text = ahead->text(what);
    // The first step creates the optimizer's state; the second is the one that training repeats.
    const bool repeats = !recording.steps && (what == "step" || what == "sync") && ahead->count(what) >= 2;
    if (!repeats) {
      if (others.insert(base::sha256(text)).second)
        base::value_or_throw(base::write_file_atomically(base::str(path, '.', others.size()), text));
      return;
    }
    base::value_or_throw(base::write_file_atomically(path, text));
    recording.steps = true;
    if (!recording.goes_on) end_recording();
  });
}

}  // namespace ahead_detail

Options compile_instead_of_running(const Options& options) {
  if (options.device != "xla") return options;
  if (const auto slices = base::environment("SLUICE_ESTIMATE")) ahead_detail::become_estimate(*slices);
  const auto order = base::environment("SLUICE_AHEAD");
  if (!order) return options;
  if (!options.mesh.empty())
    throw_error(Code::kUnimplemented,
                base::str("programs over a mesh cannot be compiled ahead of time: leave out the mesh ",
                          options.mesh.str()));
  Options chosen = options;
  chosen.xla.plugin = pjrt::plugin_without_chips(options.xla.plugin);
  chosen.xla.devices = 1;
  chosen.xla.device_ids.clear();
  static bool records = false;
  if (!records) ahead_detail::record_for(*order, chosen.xla);
  records = true;
  return chosen;
}

void record_after_steps() { ahead_detail::recording.goes_on = true; }

bool steps_are_recorded() { return ahead_detail::recording.steps; }

void end_recording() {
  std::fflush(nullptr);
  std::_Exit(0);
}

}  // namespace sluice::sessions
