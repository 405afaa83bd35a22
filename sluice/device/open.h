// Opens the process's device: the plugin, its client, the replicas of all processes.
#pragma once

#include <memory>

#include "sluice/device/runtime.h"

namespace sluice::device {

// Throws sluice::Error. With several processes, all of them call it, and all throw if one of them fails.
std::unique_ptr<Runtime> open(const Settings& settings);

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

}  // namespace sluice::device
