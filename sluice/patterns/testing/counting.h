// For tests: how often a program's text has a part.
#pragma once

#include <cstddef>
#include <string>

namespace sluice::patterns {

inline size_t times_in(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace sluice::patterns
