// Array: a dense block of numbers on the host, as files hold them and as devices take them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice::data {

enum class ElementType : std::uint8_t {
  kBool,
  kUint8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kFloat32,
  kFloat64,
};

std::size_t size_of(ElementType type);  // the bytes of one element
const char* name_of(ElementType type);  // "uint8", "float32", …

// A row-major, contiguous block. Its memory starts at a multiple of 64 bytes and is shared by copies of the
// Array; owner() keeps it alive. Several threads may read it at the same time, but not write it.
class Array {
 public:
  Array() = default;                                         // empty: no memory, no elements
  Array(ElementType type, std::vector<std::int64_t> shape);  // allocated, not initialised
  static Array zeros(ElementType type, std::vector<std::int64_t> shape);

  bool defined() const { return memory_ != nullptr; }
  void release() { memory_.reset(); }  // gives up the memory, and keeps type and shape
  ElementType type() const { return type_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t elements() const { return elements_; }
  std::size_t bytes() const { return static_cast<std::size_t>(elements_) * size_of(type_); }
  std::string describe() const;  // "uint8 [3, 32, 32]"

  // Returns the first element. Nothing is converted: T must be the array's type, which is not checked.
  template <typename T>
  T* data() {
    return static_cast<T*>(memory_.get());
  }
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(memory_.get());
  }
  const std::shared_ptr<void>& owner() const { return memory_; }

 private:
  ElementType type_ = ElementType::kUint8;
  std::vector<std::int64_t> shape_;
  std::int64_t elements_ = 0;
  std::shared_ptr<void> memory_;
};

}  // namespace sluice::data
SLUICE_API_END
