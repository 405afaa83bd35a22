#include "sluice/text/characters/aligned_text.h"

namespace sluice::text {
namespace {

// Normal forms make at most 18 bytes from one byte.
constexpr std::size_t kMaxGrowth = 64, kSmallText = std::size_t{1} << 20;

}  // namespace

AlignedText::AlignedText(std::string_view text, std::uint32_t begin, bool tracked)
    : text_(text), tracked_(tracked), begin_(begin), limit_(text.size() * kMaxGrowth + kSmallText) {
  if (!tracked) return;
  alignment_.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text[at]);
    const auto from = static_cast<std::uint32_t>(begin + at);
    alignment_.insert(alignment_.end(), length, {from, from + static_cast<std::uint32_t>(length)});
    at += length;
  }
}

AlignedText::AlignedText(const AlignedText& whole, std::size_t begin, std::size_t end)
    : text_(whole.text_.substr(begin, end - begin)), tracked_(whole.tracked_), limit_(whole.limit_) {
  if (!tracked_) return;
  alignment_.assign(whole.alignment_.begin() + static_cast<std::ptrdiff_t>(begin),
                    whole.alignment_.begin() + static_cast<std::ptrdiff_t>(end));
  if (!alignment_.empty()) begin_ = alignment_[0].begin;
}

base::Status AlignedText::check_size(std::size_t size) const {
  if (size <= limit_ && size <= UINT32_MAX) return {};
  return base::fail(Code::kResourceExhausted, "the tokenizer's steps make ", size,
                    " bytes of a text, expected at most ", limit_,
                    ": one of them is repeated, or replaces too much");
}

void Rewriter::add(std::string_view bytes, Span origin) {
  to_ += bytes;
  if (text_.tracked()) alignment_.insert(alignment_.end(), bytes.size(), origin);
}

void Rewriter::add_code(char32_t code, std::size_t origin) {
  const std::size_t before = to_.size();
  append_utf8(to_, code);
  if (text_.tracked())
    alignment_.insert(alignment_.end(), to_.size() - before,
                      origin < from_.size() ? text_.alignment()[origin] : text_.nothing());
}

void Rewriter::put_over(char32_t code, std::size_t count) {
  add_code(code, at_);
  for (; count > 0 && at_ < from_.size(); --count) at_ += utf8_length(from_[at_]);
}

void Rewriter::insert(char32_t code) { add_code(code, at_ - 1); }

void Rewriter::insert_at(std::string_view added, std::size_t end) {
  add(added, text_.tracked() && end > 0 ? text_.alignment()[end - 1] : text_.nothing());
}

void Rewriter::change(char32_t code, std::ptrdiff_t change) {
  if (change > 0) {
    insert(code);
  } else {
    put_over(code, static_cast<std::size_t>(1 - change));
  }
}

void Rewriter::prepend(std::string_view added) {
  add(added, text_.tracked() && !from_.empty() ? text_.alignment()[at_] : Span{});
}

void Rewriter::keep(std::size_t bytes) {
  to_ += from_.substr(at_, bytes);
  if (text_.tracked()) {
    const auto from = text_.alignment().begin() + static_cast<std::ptrdiff_t>(at_);
    alignment_.insert(alignment_.end(), from, from + static_cast<std::ptrdiff_t>(bytes));
  }
  at_ += bytes;
}

}  // namespace sluice::text
