// Tables for people, with columns as wide as their widest cell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::base {

using TableRow = std::vector<std::string>;  // UTF-8

// Lays out cells on one line each, without characters that control a terminal (printable.h). The first row is
// the heading. `sides` has 'l' or 'r' for each column, whose texts are aligned left or right; the last letter
// also counts for the columns after it. Without any, texts that look like numbers are aligned right.
std::vector<std::string> table_lines(const std::vector<TableRow>& rows, std::string_view sides = {});
// Prints the table to stdout.
void print_table(const std::vector<TableRow>& rows, std::string_view sides = {});

}  // namespace sluice::base
