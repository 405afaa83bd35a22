// How the process's device is opened: the plugin, its client, the replicas of all processes.
#pragma once

#include <memory>

#include "sluice/device/runtime.h"

namespace sluice::device {

// Throws sluice::Error. With several processes all of them call it, and all throw when one of them cannot go
// on.
std::unique_ptr<Runtime> open(const Settings& settings);

// What all local replicas together can do on this machine's processor, at the plugin "cpu".
struct ProcessorPeak {
  double flops_per_second = 0;  // of products of f32; 0: not known
  int threads = 1;
};
// Measures, in 0.1 s, or 0.02 s where an earlier process has; the best so far is kept beside the compiled
// programs. Nothing of this process should run meanwhile.
ProcessorPeak processor_peak(const Runtime& rt);

// What one call of a kernel can do: its threads' part of the above, and the bytes a second that they read and
// write, measured and kept likewise.
struct CallPeak {
  double flops_per_second = 0, bytes_per_second = 0;  // 0: not known
  int threads = 1;
};
CallPeak call_peak(const Runtime& rt);

}  // namespace sluice::device
