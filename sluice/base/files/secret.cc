#include "sluice/base/files/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "sluice/base/check.h"
#include "sluice/base/formats/sha256.h"

namespace sluice::base {

std::string random_bytes(size_t count) {
  constexpr size_t kAtOnce = 256;  // requests up to this size are never cut short
  std::string bytes(count, '\0');
  for (size_t at = 0; at < count;) {
    const ssize_t got = ::getrandom(&bytes[at], std::min(kAtOnce, count - at), 0);
    SLUICE_CHECK(got > 0 || errno == EINTR);
    if (got > 0) at += static_cast<size_t>(got);
  }
  return bytes;
}

std::string new_secret() { return hexadecimal(random_bytes(32)); }

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::string tag(32, '\0');
  unsigned size = 32;
  const unsigned char* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                   reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                                   reinterpret_cast<unsigned char*>(tag.data()), &size);
  SLUICE_CHECK(made != nullptr && size == tag.size());
  return tag;
}

bool same_secret(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace sluice::base
