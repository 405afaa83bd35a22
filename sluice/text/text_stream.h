// The text of tokens that arrive one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/text/tokenizer.h"

SLUICE_API_BEGIN
namespace sluice::text {

// Returns only text that later tokens do not change: a token of bytes may end within a character, which is
// then held back until it is complete. Special tokens have no text. Threads: one at a time.
class TextStream {
 public:
  // `context` is the tokens before the first one. Their text is not returned, but decoding needs them: some
  // tokenizers leave out a space at the beginning of a text.
  explicit TextStream(Tokenizer tokenizer, const std::vector<std::uint32_t>& context = {});

  // Returns the text that the token adds; "" while a character is incomplete. kOutOfRange for an unknown id.
  std::string add(std::uint32_t id);
  // Returns the text that was held back, with U+FFFD for bytes that make no character.
  std::string finish();

 private:
  // Removes tokens whose text is not needed to decode later ones.
  void forget();

  Tokenizer tokenizer_;
  std::vector<std::uint32_t> ids_;  // the last tokens
  std::string given_;               // the part of their text that was returned
};

}  // namespace sluice::text
SLUICE_API_END
