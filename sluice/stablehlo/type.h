// Element types and shapes of StableHLO values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::stablehlo {

enum class DType : uint8_t {
  kPred,
  kS8,
  kS16,
  kS32,
  kS64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF8E4M3FN,  // no infinity, one NaN; at most 448
  kF8E5M2,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,   // two f32: real and imaginary part
  kC128,  // two f64
};
constexpr int kDTypeCount = static_cast<int>(DType::kC128) + 1;

// Returns "i1", "i8" … "ui8" … "f8E5M2", "bf16", "f32", "complex<f32>": as StableHLO's text writes them.
const char* dtype_name(DType dtype);
// Returns the bytes of one element in host memory (a predicate takes one byte).
size_t dtype_size(DType dtype);

constexpr bool is_float(DType d) { return d >= DType::kF8E4M3FN && d <= DType::kF64; }
constexpr bool is_float8(DType d) { return d == DType::kF8E4M3FN || d == DType::kF8E5M2; }
constexpr bool is_complex(DType d) { return d >= DType::kC64; }
constexpr bool is_unsigned(DType d) { return d >= DType::kU8 && d <= DType::kU64; }
constexpr bool is_integer(DType d) { return d > DType::kPred && d <= DType::kU64; }

// Returns the element type of a complex number's parts; any other type itself.
constexpr DType real_dtype(DType d) {
  return d == DType::kC64 ? DType::kF32 : d == DType::kC128 ? DType::kF64 : d;
}
// Returns the complex type with parts of this type: c128 for f64, else c64.
constexpr DType complex_dtype(DType d) { return real_dtype(d) == DType::kF64 ? DType::kC128 : DType::kC64; }

using Dims = std::vector<int64_t>;

// The type of a value: element type and static dimensions, outermost first; no dimensions means a scalar.
struct Type {
  DType dtype = DType::kF32;
  Dims dims;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t numel() const;
  size_t bytes() const { return static_cast<size_t>(numel()) * dtype_size(dtype); }
  bool operator==(const Type&) const = default;
  // Returns "tensor<4x5xf32>".
  std::string str() const;
};

}  // namespace sluice::stablehlo
