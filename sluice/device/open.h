// Opens the process's device: the plugin, its client, the replicas of all processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "sluice/device/runtime.h"

namespace sluice::device {

// Throws sluice::Error. With several processes, all of them call it, and all throw if one of them fails.
std::unique_ptr<Runtime> open(const Settings& settings);

// Makes the replicas of a world, in `processes` such processes together, the devices of a mesh. The mesh must
// have their number. For one device nothing changes.
void lay_over(World& world, const Mesh& mesh, int processes = 1);

// Returns whether programs leave everything to the plugin's compiler: on a TPU or a GPU, in programs that are
// recorded for devices that are not here (ahead.h), and on a CPU without kernels (SLUICE_CPU_KERNELS=0).
bool compiler_makes_all();

// The speed that all local replicas together reach on this machine's processor, with the plugin "cpu".
struct ProcessorPeak {
  double flops_per_second = 0;  // for products of f32; 0: not known
  int threads = 1;
};
// Measures for 0.1 s, or for 0.02 s if an earlier process has measured. The best result so far is kept with
// the compiled programs. Nothing else of this process should run meanwhile.
ProcessorPeak processor_peak(const Runtime& rt);

// The speed of one call of a kernel: its threads' part of ProcessorPeak, and the bytes per second that they
// read and write, which is measured and kept in the same way.
struct CallPeak {
  double flops_per_second = 0, bytes_per_second = 0;  // 0: not known
  int threads = 1;
};
CallPeak call_peak(const Runtime& rt);

// Returns how many bytes of scores attention makes at once on devices of this kind ("TPU v5 lite"; ""): it
// makes more than that in a loop over groups of heads. 0: all of them at once, as for a CPU ("").
// $SLUICE_ATTENTION_BYTES takes precedence. Throws kInvalidArgument if that is no such number.
int64_t attention_bytes(std::string_view device_kind);
// Returns the bytes of keys and values that attention may gather on a device: SLUICE_GATHER_BYTES, or 256
// MiB. Throws kInvalidArgument.
int64_t gather_bytes();

// Returns whether the equal layers of a model become loops, where loops are on. A CPU runs layers faster one
// after the other. With a search for the first NaN, all layers' values would be kept.
bool layer_loops(const Settings& settings, bool cpu);

}  // namespace sluice::device
