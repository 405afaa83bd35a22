// Hashes of words and texts, the same on every machine and in every process. Not against people who look for
// collisions: that is sha256.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::base {

// One step: the hash of what was hashed before and a word behind it.
constexpr uint64_t mix_word(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

// Of a word and those behind it.
template <typename Words>
constexpr uint64_t hash_words(uint64_t first, const Words& words) {
  uint64_t hash = mix_word(0, first + 1);
  for (const auto& word : words) hash = mix_word(hash, static_cast<uint64_t>(word));
  return hash;
}

// Of a text: FNV-1a.
constexpr uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

}  // namespace sluice::base
