// Tables, their columns as wide as they must be.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

// The first row is the heading. Texts that look like numbers stand to the right.
std::vector<std::string> table_lines(const std::vector<std::vector<std::string>>& rows);
void print_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace sluice::cli
