// Reads serialised Protocol Buffers without their descriptions.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice::pjrt {

// Protocol Buffers' wire format: reads the fields of one message in sequence.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : rest_(bytes) {}

  // Moves to the next field; false at the end, or at bytes that are no field (broken() is then true).
  bool next() {
    if (rest_.empty() || broken_) return false;
    const uint64_t tag = varint();
    field_ = static_cast<unsigned>(tag >> 3);
    bytes_ = {};
    number_ = 0;
    wire_ = static_cast<unsigned>(tag & 7);
    switch (wire_) {
      case 0:
        number_ = varint();
        break;
      case 1:
        take(8);
        break;
      case 2:
        take(varint());
        break;
      case 5:
        take(4);
        break;
      default:
        broken_ = true;
    }
    return !broken_;
  }
  bool broken() const { return broken_; }
  unsigned field() const { return field_; }
  bool is_bytes() const { return wire_ == 2; }
  uint64_t number() const { return number_; }
  // Also the eight bytes of a double.
  std::string_view bytes() const { return bytes_; }
  double real() const {
    double value = 0;
    if (bytes_.size() == sizeof value) std::memcpy(&value, bytes_.data(), sizeof value);
    return value;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    broken_ = true;
    return 0;
  }
  bool at_end() const { return rest_.empty() || broken_; }

 private:
  void take(uint64_t size) {
    if (size > rest_.size()) {
      broken_ = true;
      return;
    }
    bytes_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }

  std::string_view rest_, bytes_;
  unsigned field_ = 0, wire_ = 0;
  uint64_t number_ = 0;
  bool broken_ = false;
};

}  // namespace sluice::pjrt
