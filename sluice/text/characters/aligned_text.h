// A text on its way from what a user wrote to what a model sees.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/text/characters/unicode.h"
#include "sluice/text/encoding.h"

namespace sluice::text {

// Valid UTF-8 and, when it is tracked, which bytes of the original each of its bytes stands for. What it was
// made of must live as long, until a step puts its own text in its place.
class AlignedText {
 public:
  // `begin`: where `text` begins in the original.
  AlignedText(std::string_view text, std::uint32_t begin, bool tracked);
  // The bytes from `begin` to `end` of another one.
  AlignedText(const AlignedText& whole, std::size_t begin, std::size_t end);
  AlignedText(const AlignedText&) = delete;
  AlignedText& operator=(const AlignedText&) = delete;

  std::string_view text() const { return text_; }
  bool tracked() const { return tracked_; }
  // kResourceExhausted for a text that steps have made out of proportion, or would: of `size` bytes.
  base::Status check_size(std::size_t size) const;
  base::Status check_size() const { return check_size(text_.size()); }
  const std::vector<Span>& alignment() const { return alignment_; }
  // What was put before the first character stands for.
  Span nothing() const { return {begin_, begin_}; }
  // What a part of the text, not an empty one, stands for.
  Span origin(std::uint32_t begin, std::uint32_t end) const {
    return {alignment_[begin].begin, alignment_[end - 1].end};
  }
  void replace(std::string text, std::vector<Span> alignment) {
    storage_ = std::move(text);
    text_ = storage_;
    alignment_ = std::move(alignment);
  }

 private:
  std::string_view text_;
  std::string storage_;
  std::vector<Span> alignment_;  // one a byte
  bool tracked_;
  std::uint32_t begin_ = 0;  // in the original
  std::size_t limit_;
};

// Writes a new text over an aligned one, from front to back.
class Rewriter {
 public:
  explicit Rewriter(AlignedText& text) : text_(text), from_(text.text()) { to_.reserve(from_.size() + 8); }

  // A character in the place of the next one.
  void put(char32_t code) { put_over(code, 1); }
  // In the place of the next `count` (at least 1): aligned with the first of them.
  void put_over(char32_t code, std::size_t count);
  // One that was not there: aligned with the character before it.
  void insert(char32_t code);
  // A text aligned with the character of the old text that ends at `end`.
  void insert_at(std::string_view added, std::size_t end);
  // A text aligned with the next character.
  void prepend(std::string_view added);
  // What tokenizers says of a character: 1: inserted, 0: in the place of one, -n: in the place of 1 + n.
  void change(char32_t code, std::ptrdiff_t change);
  // The next bytes as they are.
  void keep(std::size_t bytes);
  // Leaves the next bytes out.
  void drop(std::size_t bytes) { at_ += bytes; }
  // The place in the old text that is reached.
  std::size_t at() const { return at_; }
  // The place in the new text that is reached.
  std::uint32_t written() const { return static_cast<std::uint32_t>(to_.size()); }
  // The new text takes the place of the old one.
  void finish() { text_.replace(std::move(to_), std::move(alignment_)); }

 private:
  void add(std::string_view bytes, Span origin);
  // Aligned with the old byte `origin`, if there is one.
  void add_code(char32_t code, std::size_t origin);

  AlignedText& text_;
  const std::string_view from_;
  std::size_t at_ = 0;
  std::string to_;
  std::vector<Span> alignment_;
};

}  // namespace sluice::text
