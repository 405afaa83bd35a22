// The `xla` device for LibTorch: the functions that a program calls besides LibTorch itself.
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

// How to open the device. A value that a program sets here takes precedence over the environment; a member
// without a value takes its environment variable's value, else the default (docs/environment.md).
struct DeviceOptions {
  // "auto" (a TPU if the machine has one, else a GPU, else the CPU), "cpu", "tpu", "cuda" or a path;
  // "": $SLUICE_PLUGIN, else "auto"
  std::string plugin;
  int devices = 0;              // local replicas; 0: all devices of a TPU or GPU, one of a CPU
  std::vector<int> device_ids;  // these devices instead of the first `devices`; if programs span
                                // processes, the numbers count within each process, from 0
  int processes = 1;            // processes that train together, each with the same number of devices
  int process_index = 0;        // the number of this process, from 0
  // Make an operation without a row, or a host read between two boundaries, an error (SLUICE_STRICT; off).
  std::optional<bool> strict;
  std::optional<bool> eager;   // run each operation immediately (SLUICE_EAGER; off)
  std::optional<bool> donate;  // let programs reuse the memory of replaced values (SLUICE_DONATE; on)
  std::string dump;            // a folder for each program's StableHLO; "": $SLUICE_DUMP, else none
  int run_ahead = 2;           // programs in flight before the host waits
  // Keep programs in memory up to this number of recorded operations in all; 0: $SLUICE_KEPT_OPERATIONS, else
  // 200,000. The least recently used programs are dropped first; when needed again, they are loaded from disk
  // or compiled again.
  int64_t kept_operations = 0;
  // Let XLA's CPU plugin call oneDNN where oneDNN is faster (SLUICE_CPU_KERNELS; on).
  std::optional<bool> cpu_kernels;
  // Leave out kernels by name (SLUICE_WITHOUT_KERNELS, comma-separated), to find out which one a wrong value
  // or a slow step comes from. Unknown names throw; the error lists all names.
  std::vector<std::string> without_kernels = {};
  std::optional<bool> cache;  // keep compiled programs on disk (SLUICE_CACHE; on)
  // Make a position outside its dimension, or a label that is not a class, an error (SLUICE_CHECK; on).
  std::optional<bool> check;
  // Make the first operation whose result holds NaN, forward or backward, an error that names it and its
  // layer (SLUICE_DETECT_ANOMALY; off). Every result is checked, which takes time and memory.
  std::optional<bool> detect_anomaly;
  // Give each operation the value that LibTorch gives it, independent of the operations around it in its
  // program (exact.h; SLUICE_EXACT; off). This takes time.
  std::optional<bool> exact;
  // Turn many equal rounds in a row into one loop of the program (SLUICE_LOOPS; on).
  std::optional<bool> loops;
  // Make loops of a model's equal layers, too (SLUICE_LAYER_LOOPS; on for TPUs and GPUs, off on a CPU).
  // Has no effect without `loops`.
  std::optional<bool> layer_loops;
  // Keep small results on the host if their lengths depend on values and never settle (SLUICE_HOST_SHAPES;
  // on).
  std::optional<bool> host_shapes;
  // How products and convolutions of f32 are computed: "default", the fastest way that the device has (bf16
  // on a TPU, TF32 on a GPU, f32 on a CPU), "high" (three products of bf16 on a TPU, TF32 on a GPU), or
  // "highest" (as f32); "": $SLUICE_MATMUL_PRECISION, else "default".
  std::string matmul_precision;
  double gpu_memory = 0;  // the largest part of a GPU's memory to use, in 0…1; 0: $SLUICE_GPU_MEMORY,
                          // else the plugin's default
  std::optional<bool> gpu_preallocate;  // take that memory at the start (SLUICE_GPU_PREALLOCATE; on)
};

// Registers the device and opens the plugin. Idempotent and thread-safe. A later call with other options
// throws kFailedPrecondition; after shutdown(), any options may be given.
void init(const DeviceOptions& options = {});
bool is_initialized();
// Waits for running programs, then closes the plugin. Tensors on the device keep their values only if these
// were read before.
void shutdown();

// The number of this process's replicas, and the number of its first one among the replicas of all processes.
int replicas();
int first_replica();
// Returns "plugin tpu (libtpu.so), platform tpu, 8 local devices (TPU v3)", with the devices' ids if the
// options name them.
std::string describe_device();
// Sets whether batch normalization in training takes its statistics over the batches of all replicas
// (SyncBatchNorm). Off at first; belongs to the opened device.
void set_sync_batch_norm(bool on);

// Cuts the graph: everything recorded and still reachable is compiled (or its program found) and launched.
// Does not wait. `what` names the boundary in reports.
void sync(std::string_view what = "sync");
// Waits until all launched programs have finished; throws the error of a program that failed.
void wait();
// Cuts, then waits.
inline void sync_and_wait() {
  sync();
  wait();
}

// Makes one tensor on the device from one host tensor for each replica (all of one shape and type, contiguous
// or not). With several replicas it is marked as different on each. Asynchronous. The value may share the
// host tensors' memory (XLA's CPU plugin reads it in place), which is kept alive as long as needed: do not
// write to them afterwards. Any thread.
at::Tensor upload(const std::vector<at::Tensor>& one_per_replica);

// The values of a device tensor on their way to the host.
class Fetch {
 public:
  Fetch() = default;
  explicit operator bool() const { return state_ != nullptr; }
  bool ready() const;
  // Returns whether the values are known to be equal on all replicas. Valid once ready() is true.
  bool global() const;
  // Waits, then returns one CPU tensor for each local replica, in their order. Throws if the program that
  // computes the value failed.
  std::vector<at::Tensor> get() const;

  struct State;

 private:
  friend Fetch fetch(const at::Tensor& tensor);
  std::shared_ptr<State> state_;
};
// Starts copying a tensor's value to the host. A pending value is copied after the next cut. Neither records
// nor waits. Later writes to the tensor do not change the fetched value: a program that replaces the value in
// its memory begins when the copy has ended, so a fetch takes no memory of the devices.
Fetch fetch(const at::Tensor& tensor);

// Returns the value of one of this process's replicas, on the host; the other replicas may differ. Cuts and
// waits.
at::Tensor on_replica(const at::Tensor& tensor, int replica);
// Returns the value on the host. It must be equal on this process's replicas, but may differ in other
// processes if it came from the host. Cuts and waits.
at::Tensor local(const at::Tensor& tensor);

// Marks the storages of these parameters: writing a value that is not equal on all replicas is then an error
// that names the parameter.
void keep_equal(const std::vector<at::Tensor>& parameters);
// Sets the tensors' qualified names for error messages, reports and the locations in dumped programs.
void name_tensors(const std::vector<std::pair<std::string, at::Tensor>>& named);

// Names tensors that belong to no layer, such as the optimizer's state. Only messages about the device's
// memory use these names.
void label_tensors(const std::vector<std::pair<std::string, at::Tensor>>& named);

// A scope in which random numbers are the same on all replicas.
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
// forward pass and the loss, not around backward. Scopes nest; the outermost one clears LibTorch's cache of
// cast weights at its end.
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
  int64_t recorded = 0;      // operations recorded
  int64_t cuts = 0;          // programs launched
  int64_t programs = 0;      // distinct programs so far
  int64_t compiles = 0;      // programs compiled by the plugin
  int64_t cache_hits = 0;    // programs loaded from the disk cache
  int64_t fallbacks = 0;     // calls that ran on the CPU
  int64_t host_reads = 0;    // .item(), printing, copies to the host
  int64_t forced_cuts = 0;   // cuts because the graph grew too large
  int64_t replays = 0;       // calls of captured functions that were replayed
  int64_t live_buffers = 0;  // PJRT buffers that exist now
  int64_t pending = 0;       // recorded operations since the last cut
  double trace_seconds = 0;  // since init, in the recorder
  double compile_seconds = 0;
  double idle_compile_seconds = 0;  // the part of compile_seconds with no program on the devices
  double wait_seconds = 0;
  double busy_seconds = 0;  // the time with a program on the devices, from its launch to its end
};
Counters counters();
// Returns the number of calls that ran on the CPU so far, by operation.
std::vector<std::pair<std::string, int64_t>> fallback_counts();
// Returns a text report: programs, compiles, times with percentiles, fallbacks, transfers, memory, host reads
// by place in the user's code, and findings.
std::string metrics_report();
void reset_metrics();

}  // namespace sluice
SLUICE_API_END
