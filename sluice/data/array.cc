#include "sluice/data/array.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "sluice/base/check.h"
#include "sluice/base/text/join.h"

namespace sluice::data {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

std::size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUint8:
    case ElementType::kInt8:
      return 1;
    case ElementType::kInt16:
    case ElementType::kFloat16:
      return 2;
    case ElementType::kInt32:
    case ElementType::kFloat32:
      return 4;
    case ElementType::kInt64:
    case ElementType::kFloat64:
      return 8;
  }
  return 0;
}

const char* name_of(ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return "bool";
    case ElementType::kUint8:
      return "uint8";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kInt16:
      return "int16";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kFloat16:
      return "float16";
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
  }
  return "?";
}

Array::Array(ElementType type, std::vector<std::int64_t> shape)
    : type_(type), shape_(std::move(shape)), elements_(1) {
  for (std::int64_t extent : shape_) {
    SLUICE_CHECK(extent >= 0, "an array of shape [", base::join(shape_, ", "), "]");
    elements_ *= extent;
  }
  // The size is a multiple of the alignment: readers of vectors may touch the whole last vector.
  const std::size_t room = (bytes() / kAlignment + 1) * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, room);
  if (memory == nullptr) throw std::bad_alloc();
  memory_ = std::shared_ptr<void>(memory, std::free);
}

Array Array::zeros(ElementType type, std::vector<std::int64_t> shape) {
  Array array(type, std::move(shape));
  std::memset(array.data<void>(), 0, array.bytes());
  return array;
}

std::string Array::describe() const { return base::str(name_of(type_), " [", base::join(shape_, ", "), "]"); }

}  // namespace sluice::data
