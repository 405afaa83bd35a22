// Hashes of words and texts, the same on every machine and in every process. They do not withstand people who
// look for collisions: for that there is sha256.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice::base {

// Adds a word to a hash.
constexpr uint64_t mix_word(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

// Hashes a word and the words after it.
template <typename Words>
constexpr uint64_t hash_words(uint64_t first, const Words& words) {
  uint64_t hash = mix_word(0, first + 1);
  for (const auto& word : words) hash = mix_word(hash, static_cast<uint64_t>(word));
  return hash;
}

// Hashes bytes as words of eight, the last one filled with zeros.
inline uint64_t hash_bytes(const void* data, size_t size) {
  const char* const bytes = static_cast<const char*>(data);
  uint64_t hash = mix_word(0, size);
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min(sizeof word, size - at));
    hash = mix_word(hash, word);
  }
  return hash;
}

// Hashes a text with FNV-1a.
constexpr uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

}  // namespace sluice::base
