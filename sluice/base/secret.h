// Secrets that processes share, and how one shows the other that it has one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::base {

// Bytes that nobody can guess, of the system's generator.
std::string random_bytes(size_t count);
// A new secret as text: 64 hexadecimal digits of 32 random bytes.
std::string new_secret();
// The 32 bytes that only who has the key can make of a text.
std::string hmac_sha256(std::string_view key, std::string_view text);
// Whether two texts are the same, in a time that does not tell where they differ.
bool same_secret(std::string_view one, std::string_view other);

}  // namespace sluice::base
