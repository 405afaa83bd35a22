// The text of tokens that come one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/text/tokenizer.h"

SLUICE_API_BEGIN
namespace sluice::text {

// Gives out only what later tokens do not change: a token of bytes may end within a character, which then is
// held back until it is whole. Special tokens have no text. Threads: one at a time.
class TextStream {
 public:
  // `context`: the tokens in front of the first, whose text is not given out (some tokenizers leave out a
  // space at a text's beginning).
  explicit TextStream(Tokenizer tokenizer, const std::vector<std::uint32_t>& context = {});

  // What the token adds to the text; "" while a character is not whole. kOutOfRange for an id that no token
  // has.
  std::string add(std::uint32_t id);
  // What was held back, U+FFFD for bytes that make no character.
  std::string finish();

 private:
  // Leaves out tokens whose text is not needed to decode those that come.
  void forget();

  Tokenizer tokenizer_;
  std::vector<std::uint32_t> ids_;  // the last ones
  std::string given_;               // their text, as far as it was given out
};

}  // namespace sluice::text
SLUICE_API_END
