// Answers of clouds and files of credentials: the first byte says which, the rest is the text. Nothing is
// sent.
//
//   t a token   o an object of Cloud Storage   c a file of credentials   e an error of any service
//   f an error of Google's services   g what Google's services describe: nodes, queue entries, operations,
//   buckets, file stores
#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>

#include "sluice/base/formats/parse_json.h"
#include "sluice/cloud/credentials/token_request.h"
#include "sluice/cloud/storage.h"
#include "sluice/google/buckets.h"
#include "sluice/google/failure.h"
#include "sluice/google/filestore.h"
#include "sluice/google/operation.h"
#include "sluice/google/tpu.h"
#include "tests/fuzz/demand.h"

namespace {

using namespace sluice;

constexpr int kStatuses[] = {400, 401, 403, 404, 409, 412, 429, 500, 503};

void read_token(const std::string& body) {
  if (const auto token = cloud::parse_token(body, "the fuzzer"))
    fuzz::demand(!token->value.empty() && token->value.find_first_of("\r\n") == std::string::npos,
                 "a token is one line of a header");
}

void read_credentials(const std::string& text) {
  static const auto http = std::make_shared<cloud::Http>(cloud::HttpOptions());
  const auto found = cloud::credentials_of_json(http, "key.json", text);
  if (found) fuzz::demand(!(*found)->who().empty(), "credentials say whose they are");
}

void read_error(const std::string& body) {
  for (const int status : kStatuses) {
    cloud::HttpResponse response;
    response.status = status;
    response.body = body;
    const std::string said = cloud::status_error(response, "GET x").what();
    fuzz::demand(std::none_of(said.begin(), said.end(),
                              [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }),
                 "an error is one line");
  }
}

void read_google_error(const std::string& body) {
  for (const int status : kStatuses) {
    const auto failure = google::failure_of_answer(status, body, "creating x", "p", "tpu.googleapis.com");
    fuzz::demand(std::string_view(failure.what()).substr(0, 10) == "creating x", "an error says what failed");
  }
  const auto json = base::parse_json(body);
  if (!json.is_discarded()) (void)google::failure_of_operation(json, "creating x");
}

void read_descriptions(const std::string& body) {
  const auto json = base::parse_json(body);
  if (json.is_discarded()) return;
  (void)google::node_of(json);
  (void)google::queued_of(json);
  (void)google::bucket_of(json);
  (void)google::filestore_of(json);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 't':
      read_token(text);
      break;
    case 'o':
      (void)cloud::parse_object(text, "GET x");
      break;
    case 'c':
      read_credentials(text);
      break;
    case 'e':
      read_error(text);
      break;
    case 'f':
      read_google_error(text);
      break;
    case 'g':
      read_descriptions(text);
      break;
    default:
      break;
  }
  return 0;
}
