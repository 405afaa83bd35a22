// Converts element types and shapes between StableHLO and the C API.
#pragma once

#include <optional>

#include "sluice/pjrt/c_api.h"
#include "sluice/stablehlo/type.h"

namespace sluice::pjrt {

c::PJRT_Buffer_Type to_buffer_type(stablehlo::DType dtype);
// nullopt for types that Sluice does not have (8-bit floats …).
std::optional<stablehlo::DType> from_buffer_type(c::PJRT_Buffer_Type type);

// Returns this process's only copy of a type: equal types have equal addresses, and it is never freed. So
// buffers carry a pointer, and types are compared by their pointers. Threads: any.
const stablehlo::Type* interned(const stablehlo::Type& type);

}  // namespace sluice::pjrt
