// Tokenizers and helpers that the tests of this room share.
#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sluice/text/characters/byte_alphabet.h"

namespace sluice::text::test {

// A tokenizer with GPT-2's pattern; the ids 0 … 255 are the bytes, followed by the merges.
inline nlohmann::json byte_tokenizer(const std::vector<std::pair<std::string, std::string>>& merges) {
  nlohmann::json vocabulary = nlohmann::json::object(), list = nlohmann::json::array();
  for (int byte = 0; byte < 256; ++byte)
    vocabulary[to_byte_alphabet(std::string(1, static_cast<char>(byte)))] = byte;
  for (const auto& [first, second] : merges) {
    vocabulary[first + second] = vocabulary.size();
    list.push_back({first, second});
  }
  return {{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", list}}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"decoder", {{"type", "ByteLevel"}}}};
}

// Returns the message of the error that an action throws.
template <typename Do>
std::string thrown(const Do& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace sluice::text::test
