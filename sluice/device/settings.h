// The device's options, with open values filled in from the environment and the defaults.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/device/device.h"
#include "sluice/mesh/mesh.h"

namespace sluice::device {

// The members of DeviceOptions, which documents them, with the defaults of the members that it may leave
// open.
struct Settings {
  std::string plugin;
  int devices = 0;
  std::vector<int> device_ids;
  int processes = 1, process_index = 0;
  bool strict = false;
  bool eager = false;
  bool donate = true;
  std::string dump;
  int run_ahead = 2;
  int64_t kept_operations = 200'000;
  bool cpu_kernels = true;
  std::vector<std::string> without_kernels;
  bool cache = true;
  bool check = true;
  bool detect_anomaly = false;
  bool exact = false;
  bool loops = true;
  std::optional<bool> layer_loops = {};  // empty: by the kind of device
  bool host_shapes = true;
  std::string matmul_precision = "default";
  double gpu_memory = 0;
  bool gpu_preallocate = true;
  Mesh mesh;  // empty: none
  bool operator==(const Settings&) const = default;
};

// Returns the options' values, else the environment's, else the defaults. Throws sluice::Error for a
// SLUICE_GPU_MEMORY outside its range, for an unknown precision, and for a SLUICE_MESH that is no mesh.
// `mesh`: in place of SLUICE_MESH.
Settings settings_of(const DeviceOptions& options, const std::optional<Mesh>& mesh = std::nullopt);

}  // namespace sluice::device
