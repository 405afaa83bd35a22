// TOML files that people wrote.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::base {

// Parses TOML. kInvalidArgument with "PATH:LINE: " if the text is not TOML.
inline Result<toml::table> parse_toml(std::string_view text, const std::string& path) {
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    return fail(Code::kInvalidArgument, path, ":", error.source().begin.line, ": ", error.description());
  }
}

// Does the same with a file, which may also be one that cannot be opened.
inline Result<toml::table> parse_toml_file(const std::string& path) {
  try {
    return toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    return fail(Code::kInvalidArgument, path, ":", error.source().begin.line, ": ", error.description());
  }
}

}  // namespace sluice::base
