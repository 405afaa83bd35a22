// Element types and shapes between StableHLO's and the C API's.
#pragma once

#include <optional>

#include "sluice/pjrt/c_api.h"
#include "sluice/stablehlo/type.h"

namespace sluice::pjrt {

c::PJRT_Buffer_Type to_buffer_type(stablehlo::DType dtype);
// Nothing for the types that Sluice does not have (8-bit floats …).
std::optional<stablehlo::DType> from_buffer_type(c::PJRT_Buffer_Type type);

// The one copy of a type for this process: equal types have equal addresses, and it is never freed. So
// buffers carry a pointer, and types are compared by comparing pointers. Threads: any.
const stablehlo::Type* interned(const stablehlo::Type& type);

}  // namespace sluice::pjrt
