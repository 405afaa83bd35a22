#include "sluice/device/types.h"

#include <deque>
#include <mutex>
#include <unordered_map>

#include "sluice/base/error.h"

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
    case c10::ScalarType::Half:
      return DType::kF16;
    case c10::ScalarType::BFloat16:
      return DType::kBF16;
    case c10::ScalarType::Float:
      return DType::kF32;
    case c10::ScalarType::Double:
      return DType::kF64;
    default:
      break;
  }
  throw Error(
      Code::kUnimplemented,
      std::string("the xla device holds bool, integers, f16, bf16, f32 and f64, found element type ") +
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
    case DType::kF16:
      return c10::ScalarType::Half;
    case DType::kBF16:
      return c10::ScalarType::BFloat16;
    case DType::kF32:
      return c10::ScalarType::Float;
    case DType::kF64:
      return c10::ScalarType::Double;
  }
  return c10::ScalarType::Undefined;
}

bool is_supported(c10::ScalarType type) {
  return c10::isIntegralType(type, /*includeBool=*/true) || type == c10::ScalarType::Half ||
         type == c10::ScalarType::BFloat16 || type == c10::ScalarType::Float ||
         type == c10::ScalarType::Double;
}

TypeRef intern(DType dtype, c10::IntArrayRef dims) {
  static std::mutex mutex;
  static auto* types = new std::deque<InternedType>();
  static auto* by_hash = new std::unordered_multimap<uint64_t, TypeRef>();
  uint64_t hash = static_cast<uint64_t>(dtype) + 0x9e3779b97f4a7c15u;
  for (int64_t d : dims) hash = (hash ^ static_cast<uint64_t>(d)) * 0x100000001b3u + (hash >> 29);
  std::scoped_lock lock(mutex);
  auto [first, last] = by_hash->equal_range(hash);
  for (; first != last; ++first) {
    const stablehlo::Type& type = first->second->type;
    if (type.dtype == dtype && dims.equals(type.dims)) return first->second;
  }
  types->push_back({{dtype, dims.vec()}, to_scalar_type(dtype), static_cast<uint32_t>(types->size())});
  by_hash->emplace(hash, &types->back());
  return &types->back();
}

TypeRef intern(const stablehlo::Type& type) { return intern(type.dtype, type.dims); }

}  // namespace sluice::device
