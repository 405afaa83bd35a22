#include "sluice/stablehlo/literal.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::stablehlo::literal {
namespace {

static_assert(std::endian::native == std::endian::little, "constants are written from little-endian memory");

// A float format of 8 or 16 bits: sign, exponent, mantissa. In a format without infinities (f8E4M3FN) the
// largest pattern is the only NaN, and numbers go up to the pattern before it.
struct Narrow {
  int exponent_bits, mantissa_bits;
  bool infinities = true;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint64_t sign_bit() const { return uint64_t{1} << (exponent_bits + mantissa_bits); }
  // Returns the least magnitude that is infinite or NaN.
  uint64_t beyond() const {
    return infinities ? ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits : sign_bit() - 1;
  }
  uint64_t quiet_nan() const {
    return infinities ? beyond() | (uint64_t{1} << (mantissa_bits - 1)) : beyond();
  }
};

// Returns null for f32 and f64, which the processor has.
const Narrow* narrow_format(DType dtype) {
  static constexpr Narrow kF16{5, 10}, kBF16{8, 7}, kF8E5M2{5, 2}, kF8E4M3FN{4, 3, false};
  switch (dtype) {
    case DType::kF16:
      return &kF16;
    case DType::kBF16:
      return &kBF16;
    case DType::kF8E5M2:
      return &kF8E5M2;
    case DType::kF8E4M3FN:
      return &kF8E4M3FN;
    default:
      return nullptr;
  }
}

// Takes a long double, so that neither a double nor an int64 is rounded on its way.
uint64_t encode_narrow(long double value, const Narrow& format) {
  if (std::isnan(value)) return format.quiet_nan();
  const uint64_t sign = std::signbit(value) ? format.sign_bit() : 0;
  if (std::isinf(value)) return sign | format.beyond();
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(value, &exponent);
  exponent = std::max(exponent - 1, 1 - format.bias());
  // The value in units of the last place. Subnormals have the least exponent and no hidden bit, and a carry
  // out of the mantissa correctly lands in the exponent.
  const long double units = std::nearbyint(std::ldexp(std::abs(value), format.mantissa_bits - exponent));
  const uint64_t bits = (static_cast<uint64_t>(exponent + format.bias() - 1) << format.mantissa_bits) +
                        static_cast<uint64_t>(units);
  return sign | std::min<uint64_t>(bits, format.beyond());
}

double decode_narrow(uint64_t bits, const Narrow& format) {
  const bool negative = (bits & format.sign_bit()) != 0;
  const uint64_t magnitude = bits & (format.sign_bit() - 1);
  const uint64_t mantissa = magnitude & ((uint64_t{1} << format.mantissa_bits) - 1);
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  if (magnitude >= format.beyond()) {
    if (!format.infinities || magnitude > format.beyond()) return std::numeric_limits<double>::quiet_NaN();
    return negative ? -HUGE_VAL : HUGE_VAL;
  }
  const uint64_t units = exponent == 0 ? mantissa : mantissa | (uint64_t{1} << format.mantissa_bits);
  const double value =
      std::ldexp(static_cast<double>(units), std::max(exponent, 1) - format.bias() - format.mantissa_bits);
  return negative ? -value : value;
}

uint64_t low_bytes(uint64_t bits, DType dtype) {
  const size_t width = 8 * dtype_size(dtype);
  return width == 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

uint64_t encode_float(long double value, DType dtype) {
  if (const Narrow* format = narrow_format(dtype)) return encode_narrow(value, *format);
  if (dtype == DType::kF32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  return std::bit_cast<uint64_t>(static_cast<double>(value));
}

double decode_float(uint64_t bits, DType dtype) {
  if (const Narrow* format = narrow_format(dtype)) return decode_narrow(bits, *format);
  if (dtype == DType::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

void append_hex(std::string& text, uint64_t bits, size_t bytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  text += "0x";
  for (size_t i = 2 * bytes; i-- > 0;) text += kDigits[(bits >> (4 * i)) & 15];
}

void append_float(std::string& text, DType dtype, uint64_t bits) {
  const size_t bytes = dtype_size(dtype);
  const double value = decode_float(bits, dtype);
  if (!std::isfinite(value)) return append_hex(text, bits, bytes);
  char digits[40];
  const auto end = dtype == DType::kF64
                       ? std::to_chars(digits, digits + sizeof digits, value).ptr
                       : std::to_chars(digits, digits + sizeof digits, static_cast<float>(value)).ptr;
  // MLIR reads the digits as a double first. If that and a second rounding miss the value, its bits are
  // written.
  double read = 0;
  std::from_chars(digits, end, read);
  if (encode_float(read, dtype) != bits) return append_hex(text, bits, bytes);
  const std::string_view number(digits, static_cast<size_t>(end - digits));
  const size_t exponent = std::min(number.find('e'), number.size());
  text += number.substr(0, exponent);
  if (number.substr(0, exponent).find('.') == std::string_view::npos) text += ".0";
  text += number.substr(exponent);
}

template <typename Integer>
void append_integer(std::string& text, Integer value) {
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// Appends nested lists of the elements from `index` on, over the dimensions from `depth` on; returns the next
// index.
int64_t append_list(std::string& text, const Type& type, const void* data, size_t depth, int64_t index) {
  if (depth == type.dims.size()) {
    append(text, type.dtype, load(data, index, type.dtype));
    return index + 1;
  }
  text += '[';
  for (int64_t i = 0; i < type.dims[depth]; ++i) {
    if (i > 0) text += ", ";
    index = append_list(text, type, data, depth + 1, index);
  }
  text += ']';
  return index;
}

}  // namespace

uint64_t encode(double value, DType dtype) {
  if (dtype == DType::kPred) return value != 0;
  if (is_float(dtype)) return encode_float(value, dtype);
  const double whole = std::trunc(value);
  const double width = static_cast<double>(8 * dtype_size(dtype));
  const double least = is_unsigned(dtype) ? 0 : -std::exp2(width - 1);
  const double beyond = std::exp2(is_unsigned(dtype) ? width : width - 1);
  if (!(whole >= least && whole < beyond)) {  // a NaN fails both comparisons
    throw_error(Code::kInvalidArgument, base::str("stablehlo.constant: ", value,
                                                  " does not fit the element type ", dtype_name(dtype)));
  }
  return low_bytes(
      is_unsigned(dtype) ? static_cast<uint64_t>(whole) : static_cast<uint64_t>(static_cast<int64_t>(whole)),
      dtype);
}

uint64_t encode(int64_t value, DType dtype) {
  if (dtype == DType::kPred) return value != 0;
  if (is_float(dtype)) return encode_float(static_cast<long double>(value), dtype);
  return low_bytes(static_cast<uint64_t>(value), dtype);
}

uint64_t load(const void* data, int64_t index, DType dtype) {
  const size_t size = dtype_size(dtype);
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(data) + static_cast<size_t>(index) * size, size);
  return dtype == DType::kPred ? bits != 0 : bits;
}

bool is_nan(DType dtype, uint64_t bits) { return is_float(dtype) && std::isnan(decode_float(bits, dtype)); }

uint64_t lowest(DType dtype) {
  if (is_float(dtype)) return encode(-std::numeric_limits<double>::infinity(), dtype);
  if (!is_integer(dtype) || is_unsigned(dtype)) return 0;
  return uint64_t{1} << (8 * dtype_size(dtype) - 1);
}

uint64_t highest(DType dtype) {
  if (is_float(dtype)) return encode(std::numeric_limits<double>::infinity(), dtype);
  if (!is_integer(dtype)) return 1;
  return is_unsigned(dtype) ? low_bytes(~uint64_t{0}, dtype) : lowest(dtype) - 1;
}

void append(std::string& text, DType dtype, uint64_t bits) {
  if (dtype == DType::kPred) {
    text += bits != 0 ? "true" : "false";
  } else if (is_float(dtype)) {
    append_float(text, dtype, bits);
  } else if (is_unsigned(dtype)) {
    append_integer(text, bits);
  } else {
    const int shift = 64 - 8 * static_cast<int>(dtype_size(dtype));
    append_integer(text, static_cast<int64_t>(bits << shift) >> shift);
  }
}

void append_dense(std::string& text, const Type& type, const void* data) {
  const int64_t count = type.numel();
  text += "dense<";
  if (count > 0) {
    const uint64_t first = load(data, 0, type.dtype);
    bool splat = true;
    for (int64_t i = 1; splat && i < count; ++i) splat = load(data, i, type.dtype) == first;
    if (splat) {
      append(text, type.dtype, first);
    } else if (type.dtype == DType::kPred) {
      append_list(text, type, data, 0, 0);
    } else {
      constexpr char kDigits[] = "0123456789ABCDEF";
      const auto* bytes = static_cast<const unsigned char*>(data);
      const size_t size = type.bytes();
      text.reserve(text.size() + 2 * size + 16);
      text += "\"0x";
      for (size_t i = 0; i < size; ++i) {
        text += kDigits[bytes[i] >> 4];
        text += kDigits[bytes[i] & 15];
      }
      text += '"';
    }
  }
  text += '>';
}

}  // namespace sluice::stablehlo::literal
