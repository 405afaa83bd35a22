// Names of files, members and classes in JSON, even if their bytes are no UTF-8.
//
// JSON is UTF-8; a name of a file system or of an archive may be any bytes. In JSON a byte that is no UTF-8
// is written as the four characters \xHH, two lower-case hexadecimal digits (as `printable` shows it). If a
// name itself contains these four characters, its backslash is written as \x5c. Every other name stays as it
// is. So bytes_of_json(json_of_bytes(name)) == name for all names. In the JSON text a backslash is written
// twice, as JSON demands: "train-\\xe9.tar".
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sluice::base {

// Returns valid UTF-8.
std::string json_of_bytes(std::string_view name);
std::string bytes_of_json(std::string_view text);

// Convert all texts and names of the document as json_of_bytes() does, and back. A value that parse_json()
// discarded stays discarded.
nlohmann::json with_json_texts(const nlohmann::json& document);
nlohmann::json with_bytes(const nlohmann::json& document);

}  // namespace sluice::base
