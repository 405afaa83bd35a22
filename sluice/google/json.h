// JSON as Google's services send it: fields that may be missing, numbers that come as text.
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

// The value at a path of names ("scheduling.provisioningModel"); null when a piece is missing.
const Json& at(const Json& json, std::string_view path);
// Texts as they are; "" for what is missing or no text. Numbers and booleans are written out.
std::string text(const Json& json, std::string_view path);
// Numbers, also where they come as text ("100" of a 64-bit field); 0 for anything else.
double number(const Json& json, std::string_view path);
// true, "true" and "True".
bool truth(const Json& json, std::string_view path);
// The texts of an object (labels, metadata) and of an array.
Texts texts(const Json& json, std::string_view path);
std::vector<std::string> items(const Json& json, std::string_view path);
// The array's elements; none when it is missing.
std::vector<Json> elements(const Json& json, std::string_view path);

// "b" of "projects/p/zones/a/instances/b" and of a URL that ends so.
std::string last_piece(std::string_view name);
// "a" for key "zones" (or "locations") of the same; "" when the key is not there.
std::string piece_after(std::string_view name, std::string_view key);

// Seconds since 1970 of "2026-11-25T03:00:00.123Z" (also with an offset); 0 when it is none.
double seconds_of_time(const std::string& rfc3339);
// "2026-11-25T03:00:00Z".
std::string time_of_seconds(double seconds);

}  // namespace sluice::google
