#include "sluice/data/tools/download.h"

#include <curl/curl.h>
#include <openssl/evp.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/cloud/certificates.h"
#include "sluice/cloud/credentials/secret.h"
#include "sluice/data/shards/source.h"

namespace sluice::data {
namespace {

struct Transfer {
  base::AtomicFile* file = nullptr;
  std::optional<Error> error;
  const std::function<void(std::int64_t, std::int64_t)>* progress = nullptr;
};

std::size_t on_bytes(char* bytes, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const auto status = transfer.file->write(bytes, size * count);
  if (!status) transfer.error = status.error();
  return status ? size * count : 0;
}

int on_progress(void* context, curl_off_t total, curl_off_t done, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<Transfer*>(context);
  if (transfer.progress != nullptr && *transfer.progress && total > 0) (*transfer.progress)(done, total);
  return 0;
}

void start_curl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

}  // namespace

base::Status download(const std::string& url, const std::string& path,
                      const std::function<void(std::int64_t, std::int64_t)>& progress) {
  start_curl();
  SLUICE_TRY(auto file, base::AtomicFile::create(path));
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), &curl_easy_cleanup);
  if (!curl) return base::fail(Code::kResourceExhausted, "cannot start a download");
  Transfer transfer{&file, std::nullopt, &progress};
  char reason[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_REDIR_PROTOCOLS_STR, cloud::is_https(url) ? "https" : "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  if (const auto file = cloud::certificate_file())
    curl_easy_setopt(curl.get(), CURLOPT_CAINFO, file->c_str());
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, 30L);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_TIME, 30L);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, &transfer);
  const CURLcode status = curl_easy_perform(curl.get());
  if (transfer.error) return tl::unexpected<Error>(*transfer.error);
  const std::string why = reason[0] != '\0' ? reason : curl_easy_strerror(status);
  if (status == CURLE_PEER_FAILED_VERIFICATION || status == CURLE_SSL_CACERT_BADFILE)
    return base::fail(Code::kFailedPrecondition, "cannot download ", url, ": ", why,
                      cloud::certificate_advice());
  if (status != CURLE_OK)
    return base::fail(Code::kUnavailable, "cannot download ", url, ": ", why,
                      "; check the connection, or download it by other means and give its path");
  return file.commit();
}

base::Result<std::string> md5_of_file(const std::string& path) {
  SLUICE_TRY(auto source, open_file_source(path));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr) != 1)
    return base::fail(Code::kInternal, "this OpenSSL computes no MD5 sums (a FIPS mode?)");
  std::vector<char> piece(1 << 18);
  while (true) {
    SLUICE_TRY(const std::size_t got, source->read(piece.data(), piece.size()));
    if (got == 0) break;
    EVP_DigestUpdate(context.get(), piece.data(), got);
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_DigestFinal_ex(context.get(), digest, &length);
  return base::hexadecimal({reinterpret_cast<const char*>(digest), length});
}

}  // namespace sluice::data
