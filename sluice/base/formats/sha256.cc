#include "sluice/base/formats/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "sluice/base/check.h"

namespace sluice::base {
namespace {

// Without this, OpenSSL frees its tables at exit(), while threads still hash or still load them for the first
// time. It runs before main because the first initialisation decides, and libcurl's asks for the opposite.
[[maybe_unused]] const int kOutlivesExit = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SLUICE_CHECK(state_->context != nullptr && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
  SLUICE_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::finish() {
  std::string hash(32, '\0');
  SLUICE_CHECK(EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(hash.data()), nullptr) ==
               1);
  return hash;
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

std::string hexadecimal(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

}  // namespace sluice::base
