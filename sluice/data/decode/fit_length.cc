#include "sluice/data/decode/fit_length.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace sluice::data {
namespace {

// Fills the rows from `from` on; false if T cannot hold the value.
template <typename T>
bool fill(Array& array, std::int64_t from, double value) {
  // 2^digits is exact as a double, which the largest integer of 64 bits is not.
  if (std::is_integral_v<T> && !(value >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
                                 value < std::ldexp(1.0, std::numeric_limits<T>::digits)))
    return false;
  const auto element = static_cast<T>(value);
  if (static_cast<double>(element) != value && !std::isnan(value)) return false;
  std::fill(array.data<T>() + from, array.data<T>() + array.elements(), element);
  return true;
}

// Pads the rows; false if the type cannot hold the value. float16 can only hold 0 here.
bool pad(Array& array, std::int64_t from, double value) {
  switch (array.type()) {
    case ElementType::kBool:
      return value <= 1 && fill<std::uint8_t>(array, from, value);
    case ElementType::kUint8:
      return fill<std::uint8_t>(array, from, value);
    case ElementType::kInt8:
      return fill<std::int8_t>(array, from, value);
    case ElementType::kInt16:
      return fill<std::int16_t>(array, from, value);
    case ElementType::kInt32:
      return fill<std::int32_t>(array, from, value);
    case ElementType::kInt64:
      return fill<std::int64_t>(array, from, value);
    case ElementType::kFloat16:
      return value == 0 && fill<std::uint16_t>(array, from, 0);
    case ElementType::kFloat32:
      std::fill(array.data<float>() + from, array.data<float>() + array.elements(),
                static_cast<float>(value));
      return true;
    case ElementType::kFloat64:
      return fill<double>(array, from, value);
  }
  return false;
}

}  // namespace

base::Status fit_length(Sample& sample, std::int64_t length, std::int64_t shape_length,
                        const std::vector<double>& padding) {
  bool any = false;
  for (std::size_t i = 0; i < sample.fields.size(); ++i) {
    auto* array = std::get_if<Array>(&sample.fields[i]);
    if (array == nullptr || array->shape().empty() || array->shape().front() != length) continue;
    any = true;
    auto shape = array->shape();
    shape.front() = shape_length;
    Array fitted(array->type(), shape);
    const std::size_t bytes = std::min(array->bytes(), fitted.bytes());
    if (bytes > 0) std::memcpy(fitted.data<void>(), array->data<void>(), bytes);
    const double value = i < padding.size() ? padding[i] : 0;
    const auto from = static_cast<std::int64_t>(bytes / size_of(array->type()));
    if (!pad(fitted, from, value))
      return base::fail(Code::kInvalidArgument, "a padding of ", value, " for field ", i, ", which is ",
                        array->describe(), ": expected a number of that type");
    *array = std::move(fitted);
  }
  sample.length = std::min(length, shape_length);
  if (any) return {};
  return base::fail(Code::kInvalidArgument, "the sample's length is ", length,
                    ", but no field of it is an array with that number of rows: expected one that is padded");
}

}  // namespace sluice::data
