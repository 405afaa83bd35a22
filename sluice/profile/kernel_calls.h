// The calls of library kernels during a profile, with the operation that each was recorded as, and its time.
// XLA's CPU plugin has no profiler, so nothing else is known about the inside of a program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/base/span.h"

namespace sluice::profile {

struct KernelCall {
  int64_t recorded = 0;        // the number of its operation; 0: unknown
  const char* target;          // "sluice_convolution"; lives as long as the process
  int64_t begin = 0, end = 0;  // nanoseconds of span_clock()
  double flops = -1;           // below 0: not counted
  double bytes = 0;            // of all operands and results
};

// Stores a call if spans are being recorded. Threads: any.
void record_kernel_call(const KernelCall& call);

// The name of an operation: its location (stablehlo/location.h) and, if that names no layer, the place in the
// program, which may be empty and is only computed when a profile has ended.
struct RecordedName {
  std::string location;
  std::function<std::string()> place = {};
};
// Names an operation before its calls. The first name of an operation stays. Threads: any.
void name_recorded(int64_t recorded, RecordedName name);

// A call with its name.
struct NamedCall {
  std::string layer;  // "layer1.0.conv1"; else "aten::mm, first called at train.cc:12", or the target
  std::string pass;   // "forward", "backward", "update"; "": not known
  KernelCall call;
};
struct KernelCalls {
  std::vector<NamedCall> calls;
  int64_t dropped = 0;  // calls without room
};
// Returns the calls that began at `since` or later, ordered by their begin, and forgets all calls. For a
// recording that has ended.
KernelCalls take_kernel_calls(int64_t since);

// Returns the lines of the calls in a trace: "xla:0, library kernels", and one more for each concurrent call.
std::vector<base::SpanLine> lines_of(const KernelCalls& calls);

}  // namespace sluice::profile
