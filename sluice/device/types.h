// LibTorch's element types and Sluice's; interned types that compare by address.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>

#include "sluice/stablehlo/type.h"

namespace sluice::device {

// Throws sluice::Error(kUnimplemented) for types that the device does not hold (quantised, float8, complex of
// two f16).
stablehlo::DType to_dtype(c10::ScalarType type);
c10::ScalarType to_scalar_type(stablehlo::DType dtype);
bool is_supported(c10::ScalarType type);

// A type that exists once in the process, so that equal types have equal addresses. Never freed (a program
// needs a few hundred).
struct InternedType {
  stablehlo::Type type;
  c10::ScalarType scalar_type;
  uint32_t id;
};
using TypeRef = const InternedType*;
// Thread-safe.
TypeRef intern(stablehlo::DType dtype, c10::IntArrayRef dims);
TypeRef intern(const stablehlo::Type& type);

}  // namespace sluice::device
