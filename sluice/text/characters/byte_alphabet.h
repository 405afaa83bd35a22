// GPT-2's alphabet: a printable character for each of the 256 bytes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::text {

// The character of each byte, and the byte of a character (-1: none). All characters are below U+0144.
const std::array<char32_t, 256>& byte_alphabet();
int byte_of(char32_t character);

std::string to_byte_alphabet(std::string_view bytes);
// Returns nullopt if a character is not in the alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view text);

}  // namespace sluice::text
