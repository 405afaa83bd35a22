// What the handlers of calls share. Internal to this room.
#pragma once

#include <string_view>

#include "sluice/pjrt/custom_call.h"

namespace sluice::kernels {

// The attribute of that name, which the call must have.
inline base::Result<stablehlo::Dims> list_of(const pjrt::CustomCall& call, std::string_view name) {
  SLUICE_TRY(const auto found, call.numbers(name));
  if (!found) return base::fail(Code::kInvalidArgument, "a kernel's call needs the list ", name);
  return stablehlo::Dims(found->begin(), found->end());
}

// The memory of an operand or a result, whose elements are f32.
inline base::Result<float*> floats_of(const base::Result<pjrt::CallBuffer>& buffer) {
  SLUICE_TRY(const pjrt::CallBuffer found, buffer);
  return static_cast<float*>(found.data);
}

// Activations in memory with the channels last: rows × channels, dense.
struct Rows {
  size_t rows = 0, channels = 0;
  size_t elements() const { return rows * channels; }
};

// Of [N, C, …].
inline Rows rows_of(const pjrt::CallBuffer& x) {
  const auto channels = static_cast<size_t>(x.dims[1]);
  return {channels == 0 ? 0 : x.elements() / channels, channels};
}

// The error of a call that only another machine has a kernel for.
inline base::Status no_kernel(std::string_view what) {
  return base::fail(
      Code::kFailedPrecondition, "this CPU has no kernel for a ", what,
      " of a program that was made for another; switch the kernels off here (--cpu-kernels off)");
}

}  // namespace sluice::kernels
