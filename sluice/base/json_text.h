// JSON that a terminal may show.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sluice/base/printable.h"

namespace sluice::base {

// The document as text; what a terminal would obey is written as \u009b, and bytes that are no UTF-8 as
// U+FFFD.
inline std::string json_text(const nlohmann::json& document, int indent = 2) {
  const auto dump = [&](bool ascii) {
    return document.dump(indent, ' ', ascii, nlohmann::json::error_handler_t::replace);
  };
  const std::string text = dump(false);
  return printable(text) == text ? text : dump(true);
}

}  // namespace sluice::base
