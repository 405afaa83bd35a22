// The `xla` device for LibTorch: what a program calls besides LibTorch itself.
//
// After sluice::init(), torch::Device("xla:0") works with unmodified LibTorch code. Operations are recorded;
// a cut (sluice::sync(), a host read, session.step) lowers what was recorded to one program, compiles it
// once, and runs it asynchronously on all local replicas.
//
// Threads: recording belongs to one thread at a time, backward passes included; upload and fetch may be
// called from any thread. All functions throw sluice::Error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice {

// How to open the device. What a program sets here counts more than the environment; a member that is left
// without a value is what its variable says, else the default (docs/environment.md).
struct DeviceOptions {
  // "auto" (a TPU if the machine has one, else a GPU, else the CPU), "cpu", "tpu", "cuda" or a path;
  // "": $SLUICE_PLUGIN, else "auto"
  std::string plugin;
  int devices = 0;              // local replicas; 0: all devices of a TPU or GPU, one of a CPU
  std::vector<int> device_ids;  // these devices instead of the first `devices`; where programs span processes
                                // they count within each process, from 0
  int processes = 1;            // that train together, each with as many devices
  int process_index = 0;        // of this one
  // An operation without a row, or a host read between two boundaries, is an error (SLUICE_STRICT; off).
  std::optional<bool> strict;
  std::optional<bool> eager;   // run each operation as it comes (SLUICE_EAGER; off)
  std::optional<bool> donate;  // let a program reuse the memory of what it replaces (SLUICE_DONATE; on)
  std::string dump;            // a folder for each program's StableHLO; "": $SLUICE_DUMP, else none
  int run_ahead = 2;           // programs in flight before the host waits
  // So many recorded operations in all have the programs that are kept in memory; 0:
  // $SLUICE_KEPT_OPERATIONS, else 200,000. Those used longest ago go first, and are loaded from the disk or
  // compiled again when they are needed again.
  int64_t kept_operations = 0;
  // XLA's CPU plugin calls oneDNN where that is faster (SLUICE_CPU_KERNELS; on).
  std::optional<bool> cpu_kernels;
  std::optional<bool> cache;  // keep compiled programs on disk (SLUICE_CACHE; on)
  // A position outside its dimension, or a label that is no class, is an error (SLUICE_CHECK; on).
  std::optional<bool> check;
  // The first operation whose result holds NaN, forward or backward, is an error that names it and its layer
  // (SLUICE_DETECT_ANOMALY; off). Every result is looked at, which takes time and memory.
  std::optional<bool> detect_anomaly;
  // Each operation has the value that LibTorch gives it, whatever is around it in its program (exact.h;
  // SLUICE_EXACT; off). It takes time.
  std::optional<bool> exact;
  // Many equal rounds in a row are one loop of the program (SLUICE_LOOPS; on).
  std::optional<bool> loops;
  // Small results whose lengths depend on values, and never settle, stay with the host (SLUICE_HOST_SHAPES;
  // on).
  std::optional<bool> host_shapes;
  // How products and convolutions of f32 are computed: "default", the quickest that the device has (bf16 on a
  // TPU, TF32 on a GPU, f32 on a CPU), "high" (three products of bf16 on a TPU, TF32 on a GPU), or "highest"
  // (as f32).
  // "": $SLUICE_MATMUL_PRECISION, else "default"
  std::string matmul_precision;
  double gpu_memory = 0;  // of a GPU's memory at most this part, in 0…1; 0: $SLUICE_GPU_MEMORY, else the
                          // plugin's default
  std::optional<bool> gpu_preallocate;  // take it at the start (SLUICE_GPU_PREALLOCATE; on)
};

// Registers the device and opens the plugin. Idempotent and thread-safe; a later call with other options
// throws kFailedPrecondition (after shutdown() it is a fresh start).
void init(const DeviceOptions& options = {});
bool is_initialized();
// Waits for what runs, then closes the plugin. Tensors on the device keep their values only if they were read
// before.
void shutdown();

// The replicas of this process, and the number of the first of them among those of all processes.
int replicas();
int first_replica();
// "plugin tpu (libtpu.so), platform tpu, 8 local devices (TPU v3)"; with their ids where the options name
// them.
std::string describe_device();
// While it is on, batch normalization in training takes its statistics over the batches of all replicas
// (SyncBatchNorm). Off at first; belongs to the opened device.
void set_sync_batch_norm(bool on);

// Cuts the graph: everything recorded and still reachable is compiled (or found) and launched. Does not wait.
// `what` names the boundary in reports.
void sync(std::string_view what = "sync");
// Waits until all launched programs have finished; throws the error of the one that failed.
void wait();
// Cut, then wait.
inline void sync_and_wait() {
  sync();
  wait();
}

// One host tensor a replica (all of one shape and type, contiguous or not) as one tensor on the device. With
// several replicas it is marked as different on each. Asynchronous. The value may share the host tensors'
// memory (XLA's CPU plugin reads it in place), so do not write to them afterwards; it is kept alive as long
// as needed. Any thread.
at::Tensor upload(const std::vector<at::Tensor>& one_per_replica);

// The values of a device tensor on their way to the host.
class Fetch {
 public:
  Fetch() = default;
  explicit operator bool() const { return state_ != nullptr; }
  bool ready() const;
  // Whether the values are known to be equal on all replicas. Known when ready.
  bool global() const;
  // Waits. One CPU tensor for each local replica, in their order. Throws if the program that makes the value
  // failed.
  std::vector<at::Tensor> get() const;

  struct State;

 private:
  friend Fetch fetch(const at::Tensor& tensor);
  std::shared_ptr<State> state_;
};
// Starts copying a tensor's value to the host. A pending value is copied after the next cut; nothing is
// recorded and nothing waits here. Later writes to the tensor do not change what is fetched.
Fetch fetch(const at::Tensor& tensor);

// The value on one of this process's replicas, on the host, whatever the others hold. Cuts and waits.
at::Tensor on_replica(const at::Tensor& tensor, int replica);
// The value on the host where it is equal on this process's replicas, but came from the host and may be
// another one in the other processes. Cuts and waits.
at::Tensor local(const at::Tensor& tensor);

// Marks the storages of these parameters: a write of a value that is not equal on all replicas is an error
// that names the parameter.
void keep_equal(const std::vector<at::Tensor>& parameters);
// The tensors' qualified names, for error messages, reports and the locations in dumped programs.
void name_tensors(const std::vector<std::pair<std::string, at::Tensor>>& named);

// The same for tensors that belong to no layer, such as the optimizer's state: messages about the device's
// memory name them, and nothing else.
void label_tensors(const std::vector<std::pair<std::string, at::Tensor>>& named);

// Random numbers inside this scope are the same on all replicas.
class SharedRandom {
 public:
  SharedRandom();
  ~SharedRandom();
  SharedRandom(const SharedRandom&) = delete;
  SharedRandom& operator=(const SharedRandom&) = delete;

 private:
  bool previous_;
};

// Runs the forward pass in bf16 where LibTorch's autocast rules say so; weights stay f32. Put one around the
// forward pass and the loss, not around backward. Nests; clears LibTorch's cache of cast weights at its end.
class Autocast {
 public:
  // `device` is where the tensors live; on devices without autocast the scope does nothing.
  explicit Autocast(at::Device device, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType type_;
  bool enabled_;
  bool previous_ = false;
  at::ScalarType previous_dtype_ = at::kFloat;
};

struct Counters {
  int64_t recorded = 0;      // operations
  int64_t cuts = 0;          // programs launched
  int64_t programs = 0;      // distinct programs so far
  int64_t compiles = 0;      // of them compiled by the plugin
  int64_t cache_hits = 0;    // of them loaded from the disk cache
  int64_t fallbacks = 0;     // calls that ran on the CPU
  int64_t host_reads = 0;    // .item(), printing, copies to the host
  int64_t forced_cuts = 0;   // the graph grew too large
  int64_t replays = 0;       // calls of captured functions that were replayed
  int64_t live_buffers = 0;  // PJRT buffers now
  int64_t pending = 0;       // recorded operations since the last cut
  double trace_seconds = 0;  // since init, in the recorder
  double compile_seconds = 0;
  double idle_compile_seconds = 0;  // of these, with no program on the devices
  double wait_seconds = 0;
  double busy_seconds = 0;  // with a program on the devices, from its launch to its end
};
Counters counters();
// Calls on the CPU so far, by operation.
std::vector<std::pair<std::string, int64_t>> fallback_counts();
// A report in words and numbers: programs, compiles, times with percentiles, fallbacks, transfers, memory,
// host reads by place in the user's code, and findings.
std::string metrics_report();
void reset_metrics();

}  // namespace sluice
SLUICE_API_END
