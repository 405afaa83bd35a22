#include "sluice/base/formats/json_bytes.h"

#include <cstdio>

#include "sluice/base/text/utf8.h"

namespace sluice::base {
namespace {

int digit_of(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

// Returns the byte that the four characters at `at` stand for; -1 if they are no \xHH.
int escape_at(std::string_view text, std::size_t at) {
  if (text.size() - at < 4 || text[at] != '\\' || text[at + 1] != 'x') return -1;
  const int high = digit_of(text[at + 2]), low = digit_of(text[at + 3]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

nlohmann::json changed(const nlohmann::json& document, std::string (*change)(std::string_view)) {
  if (document.is_string()) return change(document.get_ref<const std::string&>());
  if (!document.is_structured()) return document;
  nlohmann::json result = document.is_array() ? nlohmann::json::array() : nlohmann::json::object();
  for (const auto& [name, value] : document.items()) {
    if (document.is_array()) {
      result.push_back(changed(value, change));
    } else {
      result[change(name)] = changed(value, change);
    }
  }
  return result;
}

}  // namespace

std::string json_of_bytes(std::string_view name) {
  std::string text;
  text.reserve(name.size());
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t bytes = utf8_character_at(name, at).bytes;
    if (bytes > 0 && escape_at(name, at) < 0) {
      text.append(name, at, bytes);
      at += bytes;
      continue;
    }
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\x%02x", unsigned{static_cast<unsigned char>(name[at++])});
    text += escape;
  }
  return text;
}

std::string bytes_of_json(std::string_view text) {
  std::string name;
  name.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const int byte = escape_at(text, at);
    name += byte < 0 ? text[at] : static_cast<char>(byte);
    at += byte < 0 ? 1 : 4;
  }
  return name;
}

nlohmann::json with_json_texts(const nlohmann::json& document) { return changed(document, json_of_bytes); }

nlohmann::json with_bytes(const nlohmann::json& document) { return changed(document, bytes_of_json); }

}  // namespace sluice::base
