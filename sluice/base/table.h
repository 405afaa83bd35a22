// Tables for people, their columns as wide as they must be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::base {

using TableRow = std::vector<std::string>;  // UTF-8

// Cells are shown without what a terminal would obey (printable.h), on one line. The first row is the
// heading. `sides` has 'l' or 'r' for each column, whose texts stand left or right; the last letter also
// counts for the columns behind it. Without any, texts that look like numbers stand right.
std::vector<std::string> table_lines(const std::vector<TableRow>& rows, std::string_view sides = {});
// To stdout.
void print_table(const std::vector<TableRow>& rows, std::string_view sides = {});

}  // namespace sluice::base
