// Takes text apart and compares it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::base {

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
