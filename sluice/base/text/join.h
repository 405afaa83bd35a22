// Text from values, as operator<< prints them. Errors, checks and logs need no more than this.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::base {

// Joins the pieces as operator<< prints them: str(1, " of ", 2.5).
template <typename... Pieces>
std::string str(const Pieces&... pieces) {
  std::ostringstream out;
  ((out << pieces), ...);
  return std::move(out).str();
}

// Joins the items, as operator<< prints them, with the separator between them.
template <typename Range>
std::string join(const Range& items, std::string_view separator) {
  std::ostringstream out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out << separator;
    first = false;
    out << item;
  }
  return std::move(out).str();
}

}  // namespace sluice::base
