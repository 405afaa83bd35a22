#include "sluice/base/formats/unique_json.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/formats/parse_json.h"

namespace sluice::base {

Result<nlohmann::json> parse_unique_json(std::string_view text) {
  using nlohmann::json;
  if (text.size() > kMaxJsonBytes || is_deeper_than(text, kMaxJsonDepth))
    return json(json::value_t::discarded);
  std::vector<std::vector<std::string>> open;  // the names in each object around the current place
  std::optional<std::string> repeated;
  const auto watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::key) open.back().push_back(value.get<std::string>());
    if (event != json::parse_event_t::object_end) return true;
    auto names = std::move(open.back());
    open.pop_back();
    if (repeated || names.size() == value.size()) return true;
    std::sort(names.begin(), names.end());
    repeated = *std::adjacent_find(names.begin(), names.end());
    return true;
  };
  json value = json::parse(text, watch, /*allow_exceptions=*/false);
  if (value.is_discarded() || !repeated) return value;
  constexpr std::size_t kShown = 200;
  return fail(Code::kDataLoss, "two entries of one object are called '", repeated->substr(0, kShown),
              "': expected each name once");
}

}  // namespace sluice::base
