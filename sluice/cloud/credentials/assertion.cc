// JSON Web Tokens signed with RS256.
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <nlohmann/json.hpp>

#include "sluice/base/formats/base64.h"
#include "sluice/cloud/credentials/token_request.h"

namespace sluice::cloud {
namespace {

constexpr int kLifetime = 3600;  // the longest lifetime that is allowed, in seconds

std::string base64url(std::string_view bytes) {
  std::string text = base::base64(bytes);
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  text.erase(text.find_last_not_of('=') + 1);
  return text;
}

base::Result<std::string> sign(const std::string& text, const std::string& private_key_pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> pem(
      BIO_new_mem_buf(private_key_pem.data(), static_cast<int>(private_key_pem.size())), &BIO_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(pem.get(), nullptr, nullptr, nullptr), &EVP_PKEY_free);
  if (!key || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_RSA)
    return base::fail(Code::kInvalidArgument,
                      "the private_key is not an RSA key in PEM form: download the key file again");
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  std::string signature(static_cast<std::size_t>(EVP_PKEY_get_size(key.get())), '\0');
  std::size_t size = signature.size();
  if (!context || EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     reinterpret_cast<const unsigned char*>(text.data()), text.size()) != 1)
    return base::fail(Code::kInternal, "OpenSSL could not sign with the private_key");
  signature.resize(size);
  return signature;
}

}  // namespace

base::Result<std::string> signed_assertion(const std::string& email, const std::string& key_id,
                                           const std::string& private_key_pem, const std::string& audience,
                                           double now) {
  nlohmann::json header = {{"alg", "RS256"}, {"typ", "JWT"}};
  if (!key_id.empty()) header["kid"] = key_id;
  const auto issued = static_cast<std::int64_t>(now);
  const nlohmann::json claims = {{"iss", email},
                                 {"scope", kCloudScope},
                                 {"aud", audience},
                                 {"iat", issued},
                                 {"exp", issued + kLifetime}};
  const std::string text = base64url(header.dump()) + "." + base64url(claims.dump());
  SLUICE_TRY(const std::string signature, sign(text, private_key_pem));
  return text + "." + base64url(signature);
}

}  // namespace sluice::cloud
