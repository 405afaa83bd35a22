// UTF-8, character by character.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::base {

struct Utf8Character {
  unsigned code;
  std::size_t bytes;  // 0: the bytes are no UTF-8
};

// Returns the character that begins at `at`. Overlong forms, surrogates and codes beyond U+10FFFF are no
// UTF-8.
Utf8Character utf8_character_at(std::string_view text, std::size_t at);
bool is_utf8(std::string_view text);

}  // namespace sluice::base
