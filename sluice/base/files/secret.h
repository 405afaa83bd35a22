// Secrets that processes share, and the means to prove to each other that they have one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::base {

// Returns bytes that nobody can guess, from the system's generator.
std::string random_bytes(size_t count);
// Returns a new secret as text: 64 hexadecimal digits of 32 random bytes.
std::string new_secret();
// Returns the 32 bytes that only someone with the key can compute from a text.
std::string hmac_sha256(std::string_view key, std::string_view text);
// Returns whether two texts are the same, in a time that does not reveal where they differ.
bool same_secret(std::string_view one, std::string_view other);

}  // namespace sluice::base
