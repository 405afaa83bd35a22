// Text from elsewhere, before it reaches a terminal or a log.
#pragma once

#include <string>
#include <string_view>

namespace sluice::base {

// The text with what a terminal would obey in the place of being shown written out: control characters but
// line feed and tab as \x1b, U+0080 to U+009F and what changes the direction of a line (U+202A to U+202E,
// U+2066 to U+2069) as \u009b, and bytes that are no UTF-8 as \xff. Whoever prints what a file, a store, a
// host or another process said calls it; a program's own colors are added after it.
std::string printable(std::string_view text);
// The same on one line: line feeds and tabs become spaces.
std::string printable_line(std::string_view text);

}  // namespace sluice::base
