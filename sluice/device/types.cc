#include "sluice/device/types.h"

#include "sluice/base/error.h"
#include "sluice/base/formats/hash.h"
#include "sluice/base/interner.h"

namespace sluice::device {

using stablehlo::DType;

stablehlo::DType to_dtype(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Bool:
      return DType::kPred;
    case c10::ScalarType::Char:
      return DType::kS8;
    case c10::ScalarType::Short:
      return DType::kS16;
    case c10::ScalarType::Int:
      return DType::kS32;
    case c10::ScalarType::Long:
      return DType::kS64;
    case c10::ScalarType::Byte:
      return DType::kU8;
    case c10::ScalarType::UInt16:
      return DType::kU16;
    case c10::ScalarType::UInt32:
      return DType::kU32;
    case c10::ScalarType::UInt64:
      return DType::kU64;
    case c10::ScalarType::Float8_e4m3fn:
      return DType::kF8E4M3FN;
    case c10::ScalarType::Float8_e5m2:
      return DType::kF8E5M2;
    case c10::ScalarType::Half:
      return DType::kF16;
    case c10::ScalarType::BFloat16:
      return DType::kBF16;
    case c10::ScalarType::Float:
      return DType::kF32;
    case c10::ScalarType::Double:
      return DType::kF64;
    case c10::ScalarType::ComplexFloat:
      return DType::kC64;
    case c10::ScalarType::ComplexDouble:
      return DType::kC128;
    default:
      break;
  }
  throw_error(
      Code::kUnimplemented,
      std::string("the xla device holds bool, integers, float8 (e4m3fn, e5m2), f16, bf16, f32, f64 and "
                  "complex numbers of two f32 or f64, found element type ") +
          c10::toString(type) + "; convert the tensor first");
}

c10::ScalarType to_scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kPred:
      return c10::ScalarType::Bool;
    case DType::kS8:
      return c10::ScalarType::Char;
    case DType::kS16:
      return c10::ScalarType::Short;
    case DType::kS32:
      return c10::ScalarType::Int;
    case DType::kS64:
      return c10::ScalarType::Long;
    case DType::kU8:
      return c10::ScalarType::Byte;
    case DType::kU16:
      return c10::ScalarType::UInt16;
    case DType::kU32:
      return c10::ScalarType::UInt32;
    case DType::kU64:
      return c10::ScalarType::UInt64;
    case DType::kF8E4M3FN:
      return c10::ScalarType::Float8_e4m3fn;
    case DType::kF8E5M2:
      return c10::ScalarType::Float8_e5m2;
    case DType::kF16:
      return c10::ScalarType::Half;
    case DType::kBF16:
      return c10::ScalarType::BFloat16;
    case DType::kF32:
      return c10::ScalarType::Float;
    case DType::kF64:
      return c10::ScalarType::Double;
    case DType::kC64:
      return c10::ScalarType::ComplexFloat;
    case DType::kC128:
      return c10::ScalarType::ComplexDouble;
  }
  return c10::ScalarType::Undefined;
}

bool is_supported(c10::ScalarType type) {
  return c10::isIntegralType(type, /*includeBool=*/true) || type == c10::ScalarType::Half ||
         type == c10::ScalarType::BFloat16 || type == c10::ScalarType::Float ||
         type == c10::ScalarType::Double || type == c10::ScalarType::ComplexFloat ||
         type == c10::ScalarType::ComplexDouble || type == c10::ScalarType::Float8_e4m3fn ||
         type == c10::ScalarType::Float8_e5m2;
}

TypeRef intern(DType dtype, c10::IntArrayRef dims) {
  static auto& table = *new base::Interner<InternedType>();
  return &table.find(
      base::hash_words(static_cast<uint64_t>(dtype), dims),
      [&](const InternedType& known) { return known.type.dtype == dtype && dims.equals(known.type.dims); },
      [&](size_t number) {
        return InternedType{{dtype, dims.vec()}, to_scalar_type(dtype), static_cast<uint32_t>(number)};
      });
}

TypeRef intern(const stablehlo::Type& type) { return intern(type.dtype, type.dims); }

}  // namespace sluice::device
