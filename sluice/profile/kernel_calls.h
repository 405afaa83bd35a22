// The calls of library kernels while a profile is taken: which operation each was recorded as, and when it
// ran. XLA's CPU plugin has no profiler, so they are all that is known of the inside of a program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/base/span.h"

namespace sluice::profile {

struct KernelCall {
  int64_t recorded = 0;        // the number of its operation; 0: none
  const char* target;          // "sluice_convolution"; lives as long as the process
  int64_t begin = 0, end = 0;  // nanoseconds of span_clock()
  double flops = -1;           // below 0: not counted
  double bytes = 0;            // of all operands and results
};

// Keeps a call while spans are recorded. Threads: any.
void record_kernel_call(const KernelCall& call);

// What an operation is called: its location (stablehlo/location.h) and, where that names no layer, the place
// in the program, which may be empty and is asked for once, when a profile has ended.
struct RecordedName {
  std::string location;
  std::function<std::string()> place = {};
};
// For operations whose calls may come from now on. Of two names the first stays. Threads: any.
void name_recorded(int64_t recorded, RecordedName name);

// A call with its name.
struct NamedCall {
  std::string layer;  // "layer1.0.conv1"; else "aten::mm, first called at train.cc:12", or the target
  std::string pass;   // "forward", "backward", "update"; "": not known
  KernelCall call;
};
struct KernelCalls {
  std::vector<NamedCall> calls;
  int64_t dropped = 0;  // for which there was no room
};
// Those that began at `since` or later, in the order of their begin. No call is kept behind it. For a
// recording that has ended.
KernelCalls take_kernel_calls(int64_t since);

// Their lines in a trace: "xla:0, library kernels", and one more for each that runs at the same time.
std::vector<base::SpanLine> lines_of(const KernelCalls& calls);

}  // namespace sluice::profile
