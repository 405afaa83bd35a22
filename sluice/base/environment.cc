#include "sluice/base/environment.h"

#include <cstdlib>

#include "sluice/base/log.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/number.h"

namespace sluice::base {

std::optional<std::string> environment_even_empty(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<std::string> environment(const char* name) {
  auto value = environment_even_empty(name);
  return value && value->empty() ? std::nullopt : value;
}

std::optional<bool> switch_of(std::string text) {
  text = lower_case(text);
  if (text == "1" || text == "true" || text == "yes" || text == "on") return true;
  if (text == "0" || text == "false" || text == "no" || text == "off") return false;
  return std::nullopt;
}

bool environment_flag(const char* name, bool fallback) {
  const auto text = environment(name);
  if (!text) return fallback;
  const auto value = switch_of(*text);
  if (!value)
    warn(name, " is \"", *text, "\": expected 1, true, yes or on, or 0, false, no or off; ",
         fallback ? "on it is" : "off it is");
  return value.value_or(fallback);
}

double environment_seconds(const char* name, double fallback, double least) {
  const auto text = environment(name);
  if (!text) return fallback;
  const auto seconds = number_of<double>(*text);
  if (seconds && *seconds >= least && *seconds < 1e9) return *seconds;
  warn(name, " is \"", *text, "\": expected seconds, at least ", least, "; ", fallback, " it is");
  return fallback;
}

}  // namespace sluice::base
