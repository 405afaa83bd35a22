#include "sluice/base/text/strings.h"

#include "sluice/base/text/lower_case.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace sluice::base {
namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Counts the letters to change, add, drop or swap with their neighbour; letters are compared without case.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  const auto same = [&](size_t i, size_t j) { return lower_case(a[i]) == lower_case(b[j]); };
  for (size_t i = 0; i < a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j] + (same(i, j) ? 0 : 1), last[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && same(i, j - 1) && same(i - 1, j))
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (true) {
    const size_t end = text.find(separator, start);
    if (end == std::string_view::npos) break;
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.emplace_back(text.substr(start));
  return parts;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.starts_with(prefix); }

bool ends_with(std::string_view text, std::string_view suffix) { return text.ends_with(suffix); }

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  const std::string* best = nullptr;
  // A name with more than a third of its letters wrong is another word.
  size_t best_distance = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best == nullptr ? "" : *best;
}

}  // namespace sluice::base
