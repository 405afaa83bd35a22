// Numbers that are not always known, in JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace sluice::monitor {

// null where there is nothing.
template <typename T>
nlohmann::json optional_json(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace sluice::monitor
