#include "sluice/stablehlo/type.h"

#include <array>
#include <charconv>

namespace sluice::stablehlo {
namespace {

struct DTypeRow {
  const char* name;
  size_t size;
};

// The names and sizes, in the order of DType.
constexpr std::array<DTypeRow, kDTypeCount> kDTypes = {{{"i1", 1},
                                                        {"i8", 1},
                                                        {"i16", 2},
                                                        {"i32", 4},
                                                        {"i64", 8},
                                                        {"ui8", 1},
                                                        {"ui16", 2},
                                                        {"ui32", 4},
                                                        {"ui64", 8},
                                                        {"f8E4M3FN", 1},
                                                        {"f8E5M2", 1},
                                                        {"f16", 2},
                                                        {"bf16", 2},
                                                        {"f32", 4},
                                                        {"f64", 8},
                                                        {"complex<f32>", 8},
                                                        {"complex<f64>", 16}}};

}  // namespace

const char* dtype_name(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }

size_t dtype_size(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].size; }

int64_t Type::numel() const {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

std::string Type::str() const {
  std::string text = "tensor<";
  for (int64_t dim : dims) {
    char digits[24];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, dim).ptr);
    text += 'x';
  }
  text += dtype_name(dtype);
  text += '>';
  return text;
}

}  // namespace sluice::stablehlo
