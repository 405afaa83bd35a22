#include "sluice/pjrt/types.h"

#include "sluice/base/formats/hash.h"
#include "sluice/base/interner.h"

namespace sluice::pjrt {

c::PJRT_Buffer_Type to_buffer_type(stablehlo::DType dtype) {
  switch (dtype) {
    case stablehlo::DType::kPred:
      return c::kPred;
    case stablehlo::DType::kS8:
      return c::kS8;
    case stablehlo::DType::kS16:
      return c::kS16;
    case stablehlo::DType::kS32:
      return c::kS32;
    case stablehlo::DType::kS64:
      return c::kS64;
    case stablehlo::DType::kU8:
      return c::kU8;
    case stablehlo::DType::kU16:
      return c::kU16;
    case stablehlo::DType::kU32:
      return c::kU32;
    case stablehlo::DType::kU64:
      return c::kU64;
    case stablehlo::DType::kF8E4M3FN:
      return c::kF8E4M3FN;
    case stablehlo::DType::kF8E5M2:
      return c::kF8E5M2;
    case stablehlo::DType::kF16:
      return c::kF16;
    case stablehlo::DType::kBF16:
      return c::kBF16;
    case stablehlo::DType::kF32:
      return c::kF32;
    case stablehlo::DType::kF64:
      return c::kF64;
    case stablehlo::DType::kC64:
      return c::kC64;
    case stablehlo::DType::kC128:
      return c::kC128;
  }
  return c::kInvalid;
}

std::optional<stablehlo::DType> from_buffer_type(c::PJRT_Buffer_Type type) {
  using stablehlo::DType;
  for (int i = 0; i < stablehlo::kDTypeCount; ++i) {
    if (to_buffer_type(static_cast<DType>(i)) == type) return static_cast<DType>(i);
  }
  return std::nullopt;
}

const stablehlo::Type* interned(const stablehlo::Type& type) {
  // The table is never destroyed: buffers with static lifetime may otherwise outlive it.
  static auto& table = *new base::Interner<stablehlo::Type>();
  return &table.find(
      base::hash_words(static_cast<uint64_t>(type.dtype), type.dims),
      [&](const stablehlo::Type& known) { return known == type; }, [&](size_t) { return type; });
}

}  // namespace sluice::pjrt
