// Formats numbers for a page's columns.
#pragma once

#include <cstdio>
#include <string>

namespace sluice::profile {

// Formats as printf(3) does, up to 255 characters.
std::string format(const char* form, auto... values) {
  char text[256];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

}  // namespace sluice::profile
