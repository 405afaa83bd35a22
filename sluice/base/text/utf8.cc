#include "sluice/base/text/utf8.h"

namespace sluice::base {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

}  // namespace

Utf8Character utf8_character_at(std::string_view text, std::size_t at) {
  const unsigned first = byte_at(text, at);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  unsigned code = bytes == 0 ? 0 : first & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const unsigned next = byte_at(text, at + i);
    if ((next & 0xC0) != 0x80) return {0, 0};
    code = code << 6 | (next & 0x3F);
  }
  constexpr unsigned kMin[] = {0, 0, 0x80, 0x800, 0x10000};  // codes below these have shorter forms
  if (code < kMin[bytes] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {0, 0};
  return {code, bytes};
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = utf8_character_at(text, at).bytes;
    if (bytes == 0) return false;
    at += bytes;
  }
  return true;
}

}  // namespace sluice::base
