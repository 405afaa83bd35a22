#include "sluice/base/text/table.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "sluice/base/text/printable.h"

namespace sluice::base {
namespace {

bool numeric(const std::string& text) {
  const auto digit =
      std::find_if(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return digit != text.end() && text.find_first_not_of("0123456789.<=$?% ") == std::string::npos;
}

// Counts characters of UTF-8.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::vector<std::string> table_lines(const std::vector<TableRow>& given, std::string_view sides) {
  std::vector<TableRow> rows =
      given;  // cells may contain any characters, as names of files, services and hosts do
  for (TableRow& row : rows)
    for (std::string& cell : row) cell = printable_line(cell);
  std::vector<std::size_t> widths;
  std::vector<std::string> lines;
  for (const TableRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  for (const TableRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool right = sides.empty() ? numeric(row[i]) : sides[std::min(i, sides.size() - 1)] == 'r';
      const std::string space(widths[i] - width(row[i]), ' ');
      line += right ? space + row[i] : row[i] + space;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

void print_table(const std::vector<TableRow>& rows, std::string_view sides) {
  for (const std::string& line : table_lines(rows, sides)) std::printf("%s\n", line.c_str());
}

}  // namespace sluice::base
