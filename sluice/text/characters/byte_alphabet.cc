#include "sluice/text/characters/byte_alphabet.h"

#include "sluice/text/characters/unicode.h"

namespace sluice::text {
namespace {

constexpr char32_t kBehind = 0x144;

std::array<char32_t, 256> make_alphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    alphabet[byte] = printable ? byte : next++;
  }
  return alphabet;
}

std::array<int, kBehind> make_bytes() {
  std::array<int, kBehind> bytes{};
  bytes.fill(-1);
  for (int byte = 0; byte < 256; ++byte) bytes[byte_alphabet()[static_cast<std::size_t>(byte)]] = byte;
  return bytes;
}

}  // namespace

const std::array<char32_t, 256>& byte_alphabet() {
  static const std::array<char32_t, 256> alphabet = make_alphabet();
  return alphabet;
}

int byte_of(char32_t character) {
  static const std::array<int, kBehind> bytes = make_bytes();
  return character < kBehind ? bytes[character] : -1;
}

std::string to_byte_alphabet(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) append_utf8(text, byte_alphabet()[static_cast<unsigned char>(c)]);
  return text;
}

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const int byte = byte_of(next_code_point(text, at));
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace sluice::text
