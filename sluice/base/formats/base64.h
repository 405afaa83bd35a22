// Base64 (RFC 4648, section 4): bytes as letters, digits, + and /, with = at the end.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::base {

std::string base64(std::string_view bytes);

// Returns the bytes of such a text. White space around it does not count. Nothing if the text is not base64
// or is longer than 1 GiB.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace sluice::base
