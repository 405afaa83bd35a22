// UTF-8, and Unicode's properties of code points (through ICU).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::text {

// Returns the place of the first byte that is not UTF-8 (nor are surrogates and overlong forms), or npos.
std::size_t first_invalid_utf8(std::string_view text);
// Returns OK, or kInvalidArgument with `what`, the byte's place (after `offset` more bytes) and its value.
base::Status check_utf8(std::string_view text, std::string_view what, std::uint64_t offset = 0);
// Replaces each longest part that begins a character but does not complete it with U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

// Returns the code point that begins at `at` in valid UTF-8, and moves `at` to its end.
inline char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const char32_t first = byte(at);
  if (first < 0x80) {
    at += 1;
    return first;
  }
  if (first < 0xE0) {
    at += 2;
    return (first & 0x1F) << 6 | (byte(at - 1) & 0x3F);
  }
  if (first < 0xF0) {
    at += 3;
    return (first & 0x0F) << 12 | (byte(at - 2) & 0x3Fu) << 6 | (byte(at - 1) & 0x3F);
  }
  at += 4;
  return (first & 0x07) << 18 | (byte(at - 3) & 0x3Fu) << 12 | (byte(at - 2) & 0x3Fu) << 6 |
         (byte(at - 1) & 0x3F);
}
// Returns the number of bytes of the character that begins with this byte.
inline std::size_t utf8_length(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}
// Returns where the character that ends before `at` (> 0) begins.
inline std::size_t previous_begin(std::string_view text, std::size_t at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}
std::size_t count_code_points(std::string_view text);
void append_utf8(std::string& text, char32_t code);
bool is_ascii(std::string_view text);

bool is_white_space(char32_t code);  // the property White_Space
bool is_word(char32_t code);         // \w of Unicode's regular expressions (UTS 18)
bool is_ascii_punctuation(char32_t code);
bool is_punctuation(char32_t code);      // general category P
bool is_number(char32_t code);           // N
bool is_mark(char32_t code);             // M
bool is_nonspacing_mark(char32_t code);  // Mn
bool is_control(char32_t code);          // Cc, Cf, Co
// Returns the lower-case mapping, which is one code point except for U+0130, whose second is U+0307.
char32_t lower_case(char32_t code);

// Walks the grapheme clusters of a text from front to back.
class Graphemes {
 public:
  explicit Graphemes(std::string_view text);
  ~Graphemes();
  Graphemes(const Graphemes&) = delete;
  Graphemes& operator=(const Graphemes&) = delete;
  // Returns false at the end.
  bool next(std::size_t& begin, std::size_t& end);

 private:
  struct Impl;
  Impl* impl_;
};

}  // namespace sluice::text
