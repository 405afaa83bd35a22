#include "sluice/base/printable.h"

#include <cstdio>

namespace sluice::base {
namespace {

unsigned byte_at(std::string_view text, size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

struct Character {
  unsigned code;
  size_t bytes;  // 0: the bytes are no UTF-8
};

Character character_at(std::string_view text, size_t at) {
  const unsigned first = byte_at(text, at);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  unsigned code = bytes == 0 ? 0 : first & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const unsigned next = byte_at(text, at + i);
    if ((next & 0xC0) != 0x80) return {0, 0};
    code = code << 6 | (next & 0x3F);
  }
  constexpr unsigned kMin[] = {0, 0, 0x80, 0x800, 0x10000};  // shorter forms exist for what lies below
  if (code < kMin[bytes] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {0, 0};
  return {code, bytes};
}

bool is_obeyed(unsigned code) {
  return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code <= 0x9F) ||
         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  char escape[16];
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.bytes == 0 || is_obeyed(character.code)) {
      const unsigned code = character.bytes == 0 ? byte_at(text, at) : character.code;
      std::snprintf(escape, sizeof escape, character.bytes > 1 ? "\\u%04x" : "\\x%02x", code);
      shown += escape;
    } else {
      shown.append(text, at, character.bytes);
    }
    at += character.bytes == 0 ? 1 : character.bytes;
  }
  return shown;
}

std::string printable_line(std::string_view text) {
  std::string line = printable(text);
  for (char& c : line)
    if (c == '\n' || c == '\t') c = ' ';
  return line;
}

}  // namespace sluice::base
