#include "sluice/google/json.h"

#include <cstdio>
#include <ctime>

#include "sluice/base/clock.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice::google {
namespace {

const Json kNull = nullptr;

std::string written(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  return "";
}

}  // namespace

const Json& at(const Json& json, std::string_view path) {
  const Json* here = &json;
  for (const std::string& name : base::split(path, '.')) {
    if (!here->is_object()) return kNull;
    const auto found = here->find(name);
    if (found == here->end()) return kNull;
    here = &*found;
  }
  return *here;
}

std::string text(const Json& json, std::string_view path) { return written(at(json, path)); }

double number(const Json& json, std::string_view path) {
  const Json& value = at(json, path);
  if (value.is_number()) return value.get<double>();
  return value.is_string() ? base::number_of<double>(value.get<std::string>()).value_or(0) : 0;
}

bool truth(const Json& json, std::string_view path) {
  const Json& value = at(json, path);
  return value.is_boolean() ? value.get<bool>() : value == "true" || value == "True";
}

Texts texts(const Json& json, std::string_view path) {
  Texts found;
  const Json& map = at(json, path);
  if (map.is_object())
    for (const auto& [name, value] : map.items()) found[name] = written(value);
  return found;
}

std::vector<std::string> items(const Json& json, std::string_view path) {
  std::vector<std::string> found;
  for (const Json& value : elements(json, path)) found.push_back(written(value));
  return found;
}

std::vector<Json> elements(const Json& json, std::string_view path) {
  const Json& array = at(json, path);
  return array.is_array() ? array.get<std::vector<Json>>() : std::vector<Json>();
}

std::string last_piece(std::string_view name) { return std::string(name.substr(name.rfind('/') + 1)); }

std::string piece_after(std::string_view name, std::string_view key) {
  const auto pieces = base::split(name, '/');
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i)
    if (pieces[i] == key) return pieces[i + 1];
  return "";
}

double seconds_of_time(const std::string& rfc3339) {
  std::tm tm{};
  double seconds = 0;
  int read = 0;
  if (std::sscanf(rfc3339.c_str(), "%d-%d-%dT%d:%d:%lf%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
                  &tm.tm_min, &seconds, &read) < 6)
    return 0;
  tm.tm_year -= 1900;
  tm.tm_mon -= 1;
  double offset = 0;
  int hours = 0, minutes = 0;
  char sign = '+';
  if (std::sscanf(rfc3339.c_str() + read, "%c%d:%d", &sign, &hours, &minutes) == 3)
    offset = (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
  return static_cast<double>(timegm(&tm)) + seconds - offset;
}

std::string time_of_seconds(double seconds) { return base::utc_time(seconds, "%Y-%m-%dT%H:%M:%SZ"); }

}  // namespace sluice::google
