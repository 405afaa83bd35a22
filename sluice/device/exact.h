// Values that equal LibTorch's, independent of the other operations in the program.
#pragma once

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice {

// A compiler may compute two operations as one: (x / y) / z becomes x / (y * z), which is right unless y * z
// overflows or vanishes, and bf16 values that only the next operation reads may stay f32. While an Exact
// lives, every operation that is recorded on xla:0, forward and backward, in all threads, computes its result
// from the values that its operands have in LibTorch, and its result is rounded to its type.
// DeviceOptions::exact (SLUICE_EXACT=1, --exact) does the same for the whole process. It is meant for
// debugging and for science: it costs time, because fewer operations share one pass over memory. A product
// and a sum may still be one fused multiply-add. An Exact inside another one changes nothing.
class Exact {
 public:
  Exact();
  ~Exact();
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;
};

namespace device {
// Returns whether an operation that is recorded now must be exact.
bool records_exactly();
}  // namespace device

}  // namespace sluice
SLUICE_API_END
