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

// The error of a call that only another machine has a kernel for.
inline base::Status no_kernel(std::string_view what) {
  return base::fail(
      Code::kFailedPrecondition, "this CPU has no kernel for a ", what,
      " of a program that was made for another; switch the kernels off here (--cpu-kernels off)");
}

}  // namespace sluice::kernels
