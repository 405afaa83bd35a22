// JSON as Google's services send it: fields may be missing, and numbers may be texts.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::google {

using Json = nlohmann::json;
using Texts = std::map<std::string, std::string>;

// Returns the value at a path of names ("scheduling.provisioningModel"); null if a piece is missing.
const Json& at(const Json& json, std::string_view path);
// Returns a text as it is; "" if it is missing or of another type. Numbers and booleans are written out.
std::string text(const Json& json, std::string_view path);
// Returns a number, also from a text ("100" of a 64-bit field); 0 for anything else.
double number(const Json& json, std::string_view path);
// Returns whether the value is true, "true" or "True".
bool truth(const Json& json, std::string_view path);
// Return the texts of an object (labels, metadata) and of an array.
Texts texts(const Json& json, std::string_view path);
std::vector<std::string> items(const Json& json, std::string_view path);
// Returns the array's elements; empty if it is missing.
std::vector<Json> elements(const Json& json, std::string_view path);

// Returns "b" of "projects/p/zones/a/instances/b", also of a URL with this end.
std::string last_piece(std::string_view name);
// Returns "a" for the key "zones" (or "locations") of such a name; "" if the key is missing.
std::string piece_after(std::string_view name, std::string_view key);

// Converts "2026-11-25T03:00:00.123Z" (also with an offset) to seconds since 1970; 0 if it is not a time.
double seconds_of_time(const std::string& rfc3339);
// Returns "2026-11-25T03:00:00Z".
std::string time_of_seconds(double seconds);

}  // namespace sluice::google
