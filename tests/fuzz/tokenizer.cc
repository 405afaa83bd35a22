// A tokenizer.json and a text, with a zero between them: what loads, encodes, and offsets and ids stay in
// bounds.
#include <string_view>

#include "sluice/base/error.h"
#include "sluice/text/characters/unicode.h"
#include "sluice/text/tokenizer.h"
#include "tests/fuzz/demand.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = all.find('\0');
  const std::string_view json = all.substr(0, zero);
  const std::string_view text = zero == std::string_view::npos ? "a text" : all.substr(zero + 1);
  try {
    const auto tokenizer = text::Tokenizer::parse(json, "input");
    const auto encoding = tokenizer.encode(text, {.offsets = true});
    const std::size_t count = encoding.ids.size();
    fuzz::demand(encoding.offsets.size() == count && encoding.tokens.size() == count &&
                     encoding.type_ids.size() == count && encoding.special.size() == count &&
                     encoding.attention.size() == count,
                 "each token has an entry in all lists");
    for (const text::Span& span : encoding.offsets)
      fuzz::demand(span.begin <= span.end && span.end <= text.size(), "offsets are in the text");
    std::vector<std::uint32_t> alone;
    tokenizer.append_ids(text, alone);
    std::vector<std::uint32_t> again;
    tokenizer.append_ids(text, again);
    fuzz::demand(alone == again, "words that were seen before have the same ids");
    fuzz::demand(text::first_invalid_utf8(tokenizer.decode(alone)) == std::string_view::npos,
                 "what is decoded is UTF-8");
  } catch (const Error&) {
  }
  return 0;
}
