// Patterns for objects' names.
#include "sluice/cloud/storage.h"

namespace sluice::cloud {
namespace {

// Returns the length of a [set] at the pattern's start (0: no set); `holds`: whether it contains `c`.
std::size_t match_set(std::string_view pattern, char c, bool& holds) {
  std::size_t i = 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  bool found = false;
  for (const std::size_t first = i; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      found = found || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      found = found || pattern[i] == c;
    }
  }
  if (i >= pattern.size()) return 0;
  holds = found != negated;
  return i + 1;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  // The last star and where its match began: after a mismatch it takes one more character. A ** is stored
  // separately, because it may take a slash where a later * may not.
  struct Star {
    std::size_t pattern = std::string_view::npos, name = 0;
  } one, two;
  std::size_t p = 0, n = 0;
  while (n < name.size()) {
    bool holds = false;
    const char c = p < pattern.size() ? pattern[p] : '\0';
    if (c == '*') {
      const bool twice = p + 1 < pattern.size() && pattern[p + 1] == '*';
      p += twice ? 2 : 1;
      (twice ? two : one) = {p, n};
      if (twice) one = {};
      continue;
    }
    const std::size_t set = c == '[' && p < pattern.size() ? match_set(pattern.substr(p), name[n], holds) : 0;
    if (p < pattern.size() &&
        (set > 0 ? holds && name[n] != '/' : c == name[n] || (c == '?' && name[n] != '/'))) {
      p += set > 0 ? set : 1;
      ++n;
    } else if (one.pattern != std::string_view::npos && name[one.name] != '/') {
      p = one.pattern;
      n = ++one.name;
    } else if (two.pattern != std::string_view::npos) {
      one = {};
      p = two.pattern;
      n = ++two.name;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace sluice::cloud
