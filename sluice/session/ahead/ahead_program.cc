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
#include "sluice/base/text/join.h"
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

// What SLUICE_AHEAD asks for.
struct Order {
  int devices = 0;
  std::string kind, mesh, path;
};

Order order_of(const std::string& text) {
  Order order;
  const size_t first = text.find(':');
  const size_t second = first == std::string::npos ? first : text.find(':', first + 1);
  const size_t third = second == std::string::npos ? second : text.find(':', second + 1);
  std::from_chars(text.data(), text.data() + std::min(first, text.size()), order.devices);
  if (order.devices < 1 || third == std::string::npos)
    throw_error(Code::kInvalidArgument,
                base::str("SLUICE_AHEAD: expected DEVICES:KIND:MESH:FILE, found ", text));
  order.kind = text.substr(first + 1, second - first - 1);
  order.mesh = text.substr(second + 1, third - second - 1);
  order.path = text.substr(third + 1);
  return order;
}

// Returns the mesh to record for: the order's, else the program's own. SLUICE_MESH is unset, because the
// device of this process is one that only records.
Mesh mesh_for(const Order& order, const Mesh& own) {
  const std::string variable = base::environment("SLUICE_MESH").value_or("");
  ::unsetenv("SLUICE_MESH");
  const Mesh mesh = !order.mesh.empty() ? Mesh::parse(order.mesh) : own.empty() ? Mesh::parse(variable) : own;
  return mesh.empty() ? mesh : mesh.over(order.devices);
}

void record_for(const Order& order, const Mesh& own, const DeviceOptions& device) {
  const Mesh mesh = mesh_for(order, own);
  init(device);
  // Until the process ends.
  static auto* ahead = new device::Ahead(order.devices, /*explicit_nan=*/false, order.kind, mesh);
  ahead->on_cut([path = order.path, others = std::set<std::string>()](std::string_view what) mutable {
    const std::string& text = ahead->text(what);
    // The first step creates the optimizer's state; the second is the one that training repeats.
    const bool repeats = !recording.steps && (what == "step" || what == "sync") && ahead->count(what) >= 2;
    if (!repeats) {
      if (others.insert(base::sha256(text)).second)
        base::value_or_throw(base::write_file_atomically(base::str(path, '.', others.size()), text));
      return;
    }
    base::value_or_throw(
        base::write_file_atomically(path + ".arguments", base::join(ahead->arguments(what), "\n")));
    base::value_or_throw(base::write_file_atomically(path + ".flops", base::str(ahead->flops(what))));
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
  Options chosen = options;
  chosen.mesh = {};
  chosen.xla.plugin = pjrt::plugin_without_chips(options.xla.plugin);
  chosen.xla.devices = 1;
  chosen.xla.device_ids.clear();
  static bool records = false;
  if (!records) ahead_detail::record_for(ahead_detail::order_of(*order), options.mesh, chosen.xla);
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
