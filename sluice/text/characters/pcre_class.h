// Writes a set of code points as a pattern of PCRE2.
#pragma once

#include <string>

#include "sluice/text/characters/code_points.h"

namespace sluice::text {

// Returns a character as it is written in a pattern.
std::string pcre_character(char32_t code);

// Returns a pattern that matches one character of the set. It uses properties of PCRE2's own Unicode whose
// characters are all in the set, because PCRE2 looks them up in a table. The rest are ranges, which PCRE2
// compares one after the other.
std::string pcre_class(const CodePoints& set);

}  // namespace sluice::text
