// Small helpers over std::string.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::base {

// Joins the pieces as operator<< prints them: str(1, " of ", 2.5).
template <typename... Pieces>
std::string str(const Pieces&... pieces) {
  std::ostringstream out;
  ((out << pieces), ...);
  return std::move(out).str();
}

// Joins the items, as operator<< prints them, with the separator between them.
template <typename Range>
std::string join(const Range& items, std::string_view separator) {
  std::ostringstream out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out << separator;
    first = false;
    out << item;
  }
  return std::move(out).str();
}

// Returns the pieces between separators: one more than there are separators, so "" gives one empty piece.
std::vector<std::string> split(std::string_view text, char separator);
// Removes white space at both ends.
std::string_view trim(std::string_view text);
bool starts_with(std::string_view text, std::string_view prefix);
bool ends_with(std::string_view text, std::string_view suffix);

// Returns the name in `known` nearest to `name` by edit distance, or "" when none is near: for "did you mean
// …?".
std::string nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace sluice::base
