#include "sluice/text/text_stream.h"

#include <string_view>
#include <utility>

namespace sluice::text {
namespace {

constexpr std::string_view kNoCharacter = "\xEF\xBF\xBD";  // U+FFFD
// The number of last tokens on which the decoding of the next one may depend.
constexpr std::size_t kKept = 4;

std::string_view without_tail(std::string_view text) {
  while (text.ends_with(kNoCharacter)) text.remove_suffix(kNoCharacter.size());
  return text;
}

}  // namespace

TextStream::TextStream(Tokenizer tokenizer, const std::vector<std::uint32_t>& context)
    : tokenizer_(std::move(tokenizer)), ids_(context) {
  forget();
}

std::string TextStream::add(std::uint32_t id) {
  ids_.push_back(id);
  const std::string text = tokenizer_.decode(ids_);
  const std::string_view whole = without_tail(text);
  if (whole.size() <= given_.size() || !whole.starts_with(given_)) return "";
  std::string piece(whole.substr(given_.size()));
  if (whole.size() == text.size())
    forget();
  else
    given_ = whole;
  return piece;
}

std::string TextStream::finish() {
  const std::string text = tokenizer_.decode(ids_);
  const std::string piece = text.starts_with(given_) ? text.substr(given_.size()) : "";
  ids_.clear();
  given_.clear();
  return piece;
}

void TextStream::forget() {
  // The bytes of one character are kept together.
  for (std::size_t begin = ids_.size() > kKept ? ids_.size() - kKept : 0;; --begin) {
    given_ = tokenizer_.decode(ids_.data() + begin, ids_.size() - begin);
    if (begin > 0 && given_.starts_with(kNoCharacter)) continue;
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(begin));
    return;
  }
}

}  // namespace sluice::text
