// How PCRE2 writes a set of code points.
#pragma once

#include <string>

#include "sluice/text/characters/code_points.h"

namespace sluice::text {

// A character as it is in a pattern.
std::string pcre_character(char32_t code);

// What matches one character of the set. Properties of PCRE2's own Unicode stand in it as far as the set has
// all of them, because its compiler looks them up in a table; the rest are ranges, which are compared one
// after the other.
std::string pcre_class(const CodePoints& set);

}  // namespace sluice::text
