// Tokens that are found in a text before the model sees it: special ones and ones that were added later.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sluice/text/byte_trie.h"
#include "sluice/text/models/vocabulary.h"
#include "sluice/text/steps/normalizer.h"

namespace sluice::text {

// Threads: any number of them.
class AddedTokens {
 public:
  struct Token {
    TokenId id = 0;
    std::string content;
    std::string decoded;  // the text for decoders: the normalized content of a normalized token
    bool single_word = false, left_strip = false, right_strip = false, normalized = false, special = false;
  };
  // A part of a text: a token, or (null) ordinary text.
  struct Part {
    std::size_t begin, end;
    const Token* token;
  };

  // Reads the list "added_tokens". An id is the model's or the next one; a different one in the file is
  // reported as a warning.
  static base::Result<AddedTokens> read(const Json& list, const std::string& where, const Vocabulary& model,
                                        const Normalizer* normalizer);

  // Cuts a text at the tokens that are looked for before it is normalized, or after it. Text without tokens
  // is not cut further. The parts together are the text.
  std::vector<Part> split(std::string_view text, bool normalized) const;
  bool empty(bool normalized) const { return tries_[normalized].empty(); }

  const Token* find(TokenId id) const;
  const Token* find(std::string_view content) const;
  bool is_special(std::string_view content) const;
  // The largest id + 1.
  std::size_t size() const { return size_; }

 private:
  std::vector<Token> tokens_;
  std::unordered_map<TokenId, std::size_t> by_id_;
  std::unordered_map<std::string, std::size_t> by_content_;
  ByteTrie tries_[2];  // of indices in tokens_; [1]: for normalized texts
  std::size_t size_ = 0;
};

}  // namespace sluice::text
