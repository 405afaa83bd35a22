#include "sluice/cloud/stores/hmac.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace sluice::cloud {

std::string sha256(std::string_view text) {
  std::string digest(32, '\0');
  EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr, EVP_sha256(),
             nullptr);
  return digest;
}

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::string digest(32, '\0');
  unsigned size = 32;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(digest.data()), &size);
  return digest;
}

}  // namespace sluice::cloud
