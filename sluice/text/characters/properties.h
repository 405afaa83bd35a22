// The code points of Oniguruma's properties and POSIX brackets, as in Hugging Face's `tokenizers` 0.23
// (Unicode 16), and the characters that are equal without regard to case.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/text/characters/code_points.h"

namespace sluice::text {

// A set of property_table.cc.
struct Property {
  const char* names;   // separated by blanks; [:alpha:] is a POSIX bracket
  int base;            // −1, or the index of the set from which this one differs
  const char* places;  // the bounds of its ranges or, with a base, of the ranges of the difference
};
extern const Property kProperties[];
extern const std::size_t kPropertyCount;

// Finds a name as in \p{…}, of any case and with blanks, _ and -, or [:alpha:]; nullopt if it does not exist.
std::optional<CodePoints> find_property(std::string_view name);
// Returns the property of a name that exists.
const CodePoints& property(std::string_view name);

// Returns the set with all characters that differ from one of its own only in case.
CodePoints close_over_case(const CodePoints& set);
// Returns the case-folded form of a character, which may have several characters: ss for ß.
std::u32string fold_case(char32_t code);
struct LongFold {
  char32_t code;
  std::u32string folded;
};
// The characters whose folded form has several characters.
const std::vector<LongFold>& long_folds();

}  // namespace sluice::text
