#include "sluice/base/text/printable.h"

#include <cstdio>

#include "sluice/base/text/utf8.h"

namespace sluice::base {
namespace {

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
    const Utf8Character character = utf8_character_at(text, at);
    if (character.bytes == 0 || is_obeyed(character.code)) {
      const unsigned code = character.bytes == 0 ? static_cast<unsigned char>(text[at]) : character.code;
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
