// JSON that is safe to show in a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/text/printable.h"

namespace sluice::base {

// Returns the document as text. Characters that would control a terminal are written as \u009b, and bytes
// that are no UTF-8 as in json_bytes.h.
inline std::string json_text(const nlohmann::json& document, int indent = 2) {
  const nlohmann::json whole = with_json_texts(document);
  const auto dump = [&](bool ascii) { return whole.dump(indent, ' ', ascii); };
  const std::string text = dump(false);
  return printable(text) == text ? text : dump(true);
}

}  // namespace sluice::base
