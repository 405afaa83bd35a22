// HMAC-SHA256 and SHA-256, as the signatures of S3 and Azure are made of them.
#pragma once

#include <string>
#include <string_view>

namespace sluice::cloud {

std::string sha256(std::string_view text);                             // 32 bytes
std::string hmac_sha256(std::string_view key, std::string_view text);  // 32 bytes

}  // namespace sluice::cloud
