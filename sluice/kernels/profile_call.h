// Adds a kernel's calls to a profile. Internal to this room.
#pragma once

#include <cstdint>
#include <string_view>

#include "sluice/pjrt/program/custom_call.h"

namespace sluice::kernels {

// Records a finished call with its begin and end (nanoseconds of base::span_clock()), the number by which the
// profile knows it in its program, its operations and its bytes. The target must live as long as the process
// and end with a zero byte.
void profile_call(std::string_view target, const pjrt::CustomCall& call, int64_t begin, int64_t end);

}  // namespace sluice::kernels
