#include "sluice/device/settings.h"

#include <algorithm>
#include <optional>

#include "sluice/base/environment.h"
#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice::device {
namespace {

bool chosen(const std::optional<bool>& option, const char* variable, bool usual) {
  return option ? *option : base::environment_flag(variable, usual);
}

// Returns the variable's value; nothing if it is unset or not understood.
std::optional<bool> flag_of_environment(const char* variable) {
  const bool value = base::environment_flag(variable, false);
  return value == base::environment_flag(variable, true) ? std::optional(value) : std::nullopt;
}

double gpu_memory_of_environment() {
  const auto text = base::environment("SLUICE_GPU_MEMORY");
  if (!text) return 0;
  const double fraction = base::number_of<double>(*text).value_or(0);
  if (!(fraction > 0 && fraction <= 1))
    throw_error(Code::kInvalidArgument, base::str("SLUICE_GPU_MEMORY is \"", *text,
                                                  "\": expected a part of the GPU's memory, as 0.75"));
  return fraction;
}

int64_t kept_operations_of(int64_t option) {
  const std::string text =
      option != 0 ? base::str(option) : base::environment("SLUICE_KEPT_OPERATIONS").value_or("");
  if (text.empty()) return Settings().kept_operations;
  const int64_t count = base::number_of<int64_t>(text).value_or(0);
  if (count < 1)
    throw_error(Code::kInvalidArgument,
                base::str(option != 0 ? "DeviceOptions::kept_operations" : "SLUICE_KEPT_OPERATIONS", " is \"",
                          text, "\": expected a number of recorded operations above 0"));
  return count;
}

std::string checked_precision(const std::string& option) {
  const std::string name =
      option.empty() ? base::environment("SLUICE_MATMUL_PRECISION").value_or("default") : option;
  if (name != "default" && name != "high" && name != "highest")
    throw_error(Code::kInvalidArgument,
                base::str(option.empty() ? "SLUICE_MATMUL_PRECISION" : "DeviceOptions::matmul_precision",
                          " is \"", name, "\": expected default, high or highest"));
  return name;
}

}  // namespace

Settings settings_of(const DeviceOptions& options, const std::optional<Mesh>& mesh) {
  Settings settings;
  settings.mesh = mesh ? *mesh : Mesh::parse(base::environment("SLUICE_MESH").value_or(""));
  settings.plugin = options.plugin;
  settings.devices =
      options.device_ids.empty() ? options.devices : static_cast<int>(options.device_ids.size());
  // If the processes do not divide the mesh, opening it says so.
  if (settings.devices == 0 && !settings.mesh.empty() && settings.mesh.complete())
    settings.devices = static_cast<int>(std::max<int64_t>(1, settings.mesh.devices() / options.processes));
  settings.device_ids = options.device_ids;
  settings.processes = options.processes;
  settings.process_index = options.process_index;
  settings.strict = chosen(options.strict, "SLUICE_STRICT", settings.strict);
  settings.eager = chosen(options.eager, "SLUICE_EAGER", settings.eager);
  settings.donate = chosen(options.donate, "SLUICE_DONATE", settings.donate);
  settings.dump = options.dump.empty() ? base::environment("SLUICE_DUMP").value_or("") : options.dump;
  settings.run_ahead = options.run_ahead;
  settings.kept_operations = kept_operations_of(options.kept_operations);
  settings.cpu_kernels = chosen(options.cpu_kernels, "SLUICE_CPU_KERNELS", settings.cpu_kernels);
  settings.without_kernels = options.without_kernels;
  const std::string without = base::environment("SLUICE_WITHOUT_KERNELS").value_or("");
  if (settings.without_kernels.empty() && !without.empty())
    settings.without_kernels = base::split(without, ',');
  settings.cache = chosen(options.cache, "SLUICE_CACHE", settings.cache);
  settings.check = chosen(options.check, "SLUICE_CHECK", settings.check);
  settings.detect_anomaly = chosen(options.detect_anomaly, "SLUICE_DETECT_ANOMALY", settings.detect_anomaly);
  settings.exact = chosen(options.exact, "SLUICE_EXACT", settings.exact);
  settings.loops = chosen(options.loops, "SLUICE_LOOPS", settings.loops);
  settings.layer_loops =
      options.layer_loops ? options.layer_loops : flag_of_environment("SLUICE_LAYER_LOOPS");
  settings.host_shapes = chosen(options.host_shapes, "SLUICE_HOST_SHAPES", settings.host_shapes);
  settings.matmul_precision = checked_precision(options.matmul_precision);
  settings.gpu_memory = options.gpu_memory > 0 ? options.gpu_memory : gpu_memory_of_environment();
  settings.gpu_preallocate =
      chosen(options.gpu_preallocate, "SLUICE_GPU_PREALLOCATE", settings.gpu_preallocate);
  return settings;
}

}  // namespace sluice::device
