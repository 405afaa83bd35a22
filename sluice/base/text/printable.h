// Text from elsewhere, before it reaches a terminal or a log.
#pragma once

#include <string>
#include <string_view>

namespace sluice::base {

// Escapes everything that would control a terminal instead of being shown: control characters except line
// feed and tab as \x1b, U+0080 to U+009F and the characters that change the direction of a line (U+202A to
// U+202E, U+2066 to U+2069) as \u009b, and bytes that are no UTF-8 as \xff. To be called on everything
// printed that came from a file, a store, a host or another process; a program's own colors are added after
// it.
std::string printable(std::string_view text);
// As printable(), but on one line: line feeds and tabs become spaces.
std::string printable_line(std::string_view text);

}  // namespace sluice::base
