#include "sluice/base/formats/parse_json.h"

namespace sluice::base {

bool is_deeper_than(std::string_view text, int depth) {
  int open = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      if (++open > depth) return true;
    } else if (c == ']' || c == '}') {
      --open;
    }
  }
  return false;
}

nlohmann::json parse_json(std::string_view text) {
  if (text.size() > kMaxJsonBytes || is_deeper_than(text, kMaxJsonDepth))
    return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace sluice::base
