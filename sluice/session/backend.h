// The only place where training calls the device room. There are two kinds of device: "xla" (recorded
// programs on all local replicas) and "cpu" (LibTorch's own CPU, eager, one replica); everything above this
// file is written for both.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/device/device.h"
#include "sluice/device/sharding/block_places.h"
#include "sluice/device/sharding/blocks.h"
#include "sluice/mesh/mesh.h"
#include "sluice/mesh/rules.h"
#include "sluice/pjrt/device.h"
#include "sluice/stablehlo/flops.h"
#include "sluice/stablehlo/layer_work.h"

namespace sluice::pjrt {
class Plugin;
}
namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace sluice::sessions {

// A value on its way to the host. Copies share it.
class Pending {
 public:
  Pending() = default;
  bool ready() const;
  // Waits. Returns one CPU tensor for each local replica.
  std::vector<at::Tensor> get() const;
  // Waits. Returns only the first replica's value, without the others' values and the buffers of the devices.
  Pending first() const;
  // Whether the values are known to be equal on all replicas. Call it after get().
  bool global() const { return host_.defined() || fetch_.global(); }

 private:
  friend class Backend;
  Fetch fetch_;
  at::Tensor host_;
};

// Seconds of this process so far.
struct DeviceTimes {
  double busy = 0;            // with a program on the devices, from its launch to its end
  double compiling = 0;       // lowering, compiling, or loading what was compiled before
  double compiling_idle = 0;  // part of `compiling` with no program on the devices
};

// Threads: upload() and Pending from any thread, the rest from the one that records. Throws sluice::Error.
class Backend {
 public:
  // `device` is "xla" or "cpu". With an empty mesh, SLUICE_MESH counts.
  Backend(const std::string& device, const DeviceOptions& options, const Mesh& mesh);

  at::Device device() const { return device_; }
  bool is_xla() const { return device_.is_xla(); }
  int replicas() const { return one_for_all_ ? 1 : local_replicas_ * processes_; }
  int local_replicas() const { return local_replicas_; }
  int first_replica() const { return first_replica_; }
  // Returns whether the devices of several processes share one model (docs/sharding.md): there is one replica
  // then, and values are computed from the whole batch.
  bool spans_processes() const { return processes_ > 1 && one_for_all_; }
  int process() const { return process_; }
  int processes() const { return processes_; }
  // As sluice::batch_part() and batch_parts().
  int batch_part() const { return batch_part_; }
  int batch_parts() const { return batch_parts_; }

  // The mesh of the device, with all sizes; empty without one.
  Mesh mesh() const;
  // Moves a module to the device, laid out over the mesh if there is one. What is there already stays.
  void place(torch::nn::Module& module, const std::vector<ShardRule>& rules = {}) const;
  // Warns once, with a mesh, that an optimizer such as LBFGS joins all parameters into whole vectors.
  void warn_of_flat_vectors() const;
  // Makes one tensor of the replicas' batches. With a mesh over several processes, each gives its rows.
  at::Tensor upload(const std::vector<at::Tensor>& one_per_replica) const;
  // Gives all replicas this value, which is equal in all processes.
  at::Tensor upload_equal(const at::Tensor& host) const;
  // Later writes to the tensor do not change what arrives.
  Pending fetch(const at::Tensor& tensor) const;
  // Returns the blocks of a tensor. One on the host is a block of process 0, also if others have it.
  device::Blocks blocks(const at::Tensor& tensor) const;
  // Returns zeros on the device that lie like this tensor, which is there; later writes keep the layout.
  at::Tensor zeros_like(const at::Tensor& tensor) const;
  // Does what fetch() does, for a block that this process holds.
  Pending fetch_block(const at::Tensor& tensor, const device::Blocks& blocks, size_t number) const;
  // Returns a part of such a block; parts of one Pending share its copy.
  Pending fetch_part(const Pending& block, const device::LocalBlock& part) const;
  // Ends the graph here, if something was recorded since the last cut.
  void cut(const char* what) const;
  void wait() const;
  void keep_equal(const std::vector<at::Tensor>& parameters) const;
  void name(const std::vector<std::pair<std::string, at::Tensor>>& tensors) const;
  // Gives the tensors names that only messages about memory use.
  void label(const std::vector<std::pair<std::string, at::Tensor>>& tensors) const;
  // Makes the optimizer's step, also inside a captured function.
  void step(torch::optim::Optimizer& optimizer) const;
  // The number of programs compiled so far.
  int64_t compiles() const;
  // Null on the device "cpu".
  std::shared_ptr<const pjrt::Plugin> plugin() const;
  // All 0 on the device "cpu", which has no programs.
  DeviceTimes times() const;
  // Returns what all programs launched so far have computed on one replica; empty on the device "cpu".
  std::optional<stablehlo::Flops> flops() const;
  // Returns a function that gives what all programs launched after this call compute and hold, by layer; it
  // gives nothing on the device "cpu".
  std::function<std::optional<stablehlo::Work>()> watch_work() const;
  // Calls `call` once, with the time on monotonic_seconds(), when all that has been launched has ended; from
  // any thread.
  void at_end(std::function<void(double)> call) const;
  // The statistics of the local device with the most memory in use; empty if the plugin does not report them.
  std::optional<pjrt::MemoryStats> memory() const;

 private:
  at::Device device_;
  int local_replicas_ = 1, first_replica_ = 0;
  int processes_ = 1;
  mutable bool warned_of_flat_vectors_ = false;
  int batch_part_ = 0, batch_parts_ = 1;
  bool one_for_all_ = false;  // there is a mesh
  int process_ = 0;
};

}  // namespace sluice::sessions
