// A text between the user's input and the model's, with an optional alignment to the input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/text/characters/unicode.h"
#include "sluice/text/encoding.h"

namespace sluice::text {

// Valid UTF-8 and, if it is tracked, the bytes of the original that each of its bytes stands for. The source
// must outlive it until a step replaces the text.
class AlignedText {
 public:
  // `begin` is the place in the original at which `text` begins.
  AlignedText(std::string_view text, std::uint32_t begin, bool tracked);
  // The bytes from `begin` to `end` of another text.
  AlignedText(const AlignedText& whole, std::size_t begin, std::size_t end);
  AlignedText(const AlignedText&) = delete;
  AlignedText& operator=(const AlignedText&) = delete;

  std::string_view text() const { return text_; }
  bool tracked() const { return tracked_; }
  // kResourceExhausted if `size` is out of proportion to the original text.
  base::Status check_size(std::size_t size) const;
  base::Status check_size() const { return check_size(text_.size()); }
  const std::vector<Span>& alignment() const { return alignment_; }
  // The empty span that text inserted before the first character stands for.
  Span nothing() const { return {begin_, begin_}; }
  // Returns the part of the original that a non-empty part of the text stands for.
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
  std::vector<Span> alignment_;  // [byte]
  bool tracked_;
  std::uint32_t begin_ = 0;  // in the original
  std::size_t limit_;
};

// Writes a new text over an aligned one, from front to back.
class Rewriter {
 public:
  explicit Rewriter(AlignedText& text) : text_(text), from_(text.text()) { to_.reserve(from_.size() + 8); }

  // Writes a character that replaces the next one.
  void put(char32_t code) { put_over(code, 1); }
  // Writes a character that replaces the next `count` ones (at least 1), aligned with the first of them.
  void put_over(char32_t code, std::size_t count);
  // Writes a new character, aligned with the character before it.
  void insert(char32_t code);
  // Writes a text aligned with the character of the old text that ends at `end`.
  void insert_at(std::string_view added, std::size_t end);
  // Writes a text aligned with the next character.
  void prepend(std::string_view added);
  // Writes a character with a `change` of `tokenizers`: 1 inserts, 0 replaces one, -n replaces 1 + n.
  void change(char32_t code, std::ptrdiff_t change);
  // Copies the next bytes unchanged.
  void keep(std::size_t bytes);
  // Skips the next bytes.
  void drop(std::size_t bytes) { at_ += bytes; }
  // The current place in the old text.
  std::size_t at() const { return at_; }
  // The current place in the new text.
  std::uint32_t written() const { return static_cast<std::uint32_t>(to_.size()); }
  // Replaces the old text with the new one.
  void finish() { text_.replace(std::move(to_), std::move(alignment_)); }

 private:
  void add(std::string_view bytes, Span origin);
  // Writes a character aligned with the old byte `origin`, if there is one.
  void add_code(char32_t code, std::size_t origin);

  AlignedText& text_;
  const std::string_view from_;
  std::size_t at_ = 0;
  std::string to_;
  std::vector<Span> alignment_;
};

}  // namespace sluice::text
