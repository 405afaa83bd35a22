// A call of a kernel in a profile. Internal to this room.
#pragma once

#include <cstdint>
#include <string_view>

#include "sluice/pjrt/custom_call.h"

namespace sluice::kernels {

// Keeps a call that was answered: between these moments (nanoseconds of base::span_clock()), with what its
// program says it was recorded as, its operations and its bytes. The target lives as long as the process, and
// a zero is behind it.
void profile_call(std::string_view target, const pjrt::CustomCall& call, int64_t begin, int64_t end);

}  // namespace sluice::kernels
