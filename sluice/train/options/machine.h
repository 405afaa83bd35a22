// The options of the devices, and of how they compute.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/mesh/mesh.h"
#include "sluice/train/choices.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct MachineSection {
  DeviceKind device = DeviceKind::kXla;
  std::string plugin;  // see DeviceOptions
  int devices = 0;     // 0: all of a TPU or GPU, 1 of a CPU
  std::vector<int> device_ids;
  Mesh mesh;  // the devices share one model; empty: SLUICE_MESH, else each has all of it
  Precision precision = Precision::kF32;
  // Compute layers again in the backward pass (models::TransformerOptions); unset: with a mesh whose fsdp is
  // above 1, if the model has such layers.
  std::optional<bool> recompute;
  bool sync_batch_norm = false;  // statistics over all replicas' batches
  int64_t check_replicas = 0;    // compare the parameters on all replicas every N steps; 0: never
  std::optional<bool> cpu_kernels, strict, detect_anomaly, exact;  // see DeviceOptions
};

}  // namespace sluice::train

SLUICE_API_END
