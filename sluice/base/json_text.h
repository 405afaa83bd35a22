// JSON that a terminal may show.
#pragma once

#include <string>

#include "sluice/base/printable.h"

namespace sluice::base {

// The document (nlohmann::json, which this room does not know) as text; what a terminal would obey is written
// as \u009b, and bytes that are no UTF-8 as U+FFFD.
template <typename Json>
std::string json_text(const Json& document, int indent = 2) {
  const auto dump = [&](bool ascii) {
    return document.dump(indent, ' ', ascii, Json::error_handler_t::replace);
  };
  const std::string text = dump(false);
  return printable(text) == text ? text : dump(true);
}

}  // namespace sluice::base
