// Numbers in a page's columns.
#pragma once

#include <cstdio>
#include <string>

namespace sluice::profile {

// As printf(3), up to 255 characters.
std::string format(const char* form, auto... values) {
  char text[256];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

}  // namespace sluice::profile
