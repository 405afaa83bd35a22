// Writes numbers that may be unknown as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace sluice::monitor {

// Returns null for nullopt.
template <typename T>
nlohmann::json optional_json(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace sluice::monitor
