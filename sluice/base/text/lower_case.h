// Lower case for names whose letters are ASCII: extensions, headers, host names, names of machine types.
#pragma once

#include <string>
#include <string_view>

namespace sluice::base {

// Changes A to Z and no other byte, in every locale.
constexpr char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower_case(c);
  return result;
}

}  // namespace sluice::base
