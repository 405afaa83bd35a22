// Writes Protocol Buffers' wire format without descriptions of messages: for the few small messages that
// other programs' formats need. https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::base {

// Appends the fields of one message to `bytes()`. A negative number takes ten bytes, as with int64.
class ProtoWriter {
 public:
  ProtoWriter& number(unsigned field, int64_t value) {
    key(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  ProtoWriter& real(unsigned field, double value) {  // a double
    key(field, 1);
    fixed(std::bit_cast<uint64_t>(value));
    return *this;
  }
  ProtoWriter& real32(unsigned field, float value) {  // a float
    key(field, 5);
    fixed(std::bit_cast<uint32_t>(value));
    return *this;
  }
  // A string, bytes, or a message.
  ProtoWriter& bytes(unsigned field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_.append(value);
    return *this;
  }
  // Appends a number without a field's key, for packed repeated numbers.
  ProtoWriter& varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void key(unsigned field, unsigned wire_type) { varint(uint64_t{field} << 3 | wire_type); }
  template <typename Word>
  void fixed(Word value) {
    static_assert(std::endian::native == std::endian::little);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  std::string bytes_;
};

}  // namespace sluice::base
