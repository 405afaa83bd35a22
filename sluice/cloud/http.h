// HTTP over libcurl, 1.1 unless a request asks for 2: connections are kept and reused.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cloud/credentials/secret.h"
#include "sluice/cloud/retry.h"

namespace sluice::cloud {

struct HttpResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case; trailers too
  std::string body;  // the bytes that on_body did not take; for an error, the first 64 KiB

  // Returns the last header of this name (given in lower case).
  std::optional<std::string> header(std::string_view name) const;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers = {};  // "Name: value"
  std::string_view body = {};             // must stay valid until the answer arrives
  // Takes the body of a 2xx answer piece by piece; false ends the transfer (the error is then kAborted).
  std::function<bool(const HttpResponse& head, const char* bytes, std::size_t size)> on_body = nullptr;
  Secret secret = {};               // the secret in its headers, its query or its body
  bool follow_redirects = false;    // never with a secret, and never from https to http
  bool direct = false;              // never through a proxy
  bool http2 = false;               // without negotiation, as gRPC services without TLS require
  bool exact_path = false;          // "/a/../b" stays as it is
  std::size_t max_body = 64 << 20;  // limit in bytes for an answer that on_body does not take
  double total_timeout = 0;         // seconds for the whole request; 0: no limit while bytes arrive
  double stall_timeout = 0;         // seconds; 0: HttpOptions::stall_timeout
  double slowest = 1000;            // bytes a second; a transfer below it for stall_timeout has stalled
  const std::atomic<bool>* cancelled = nullptr;  // checked when bytes arrive, and once a second
};

struct HttpOptions {
  double connect_timeout = 10;  // seconds
  double stall_timeout = 20;    // seconds below 1 kB/s until a transfer counts as dead
  RetryPolicy retry;
  Clock clock = Clock::real();
};

// Threads: all members from any thread.
class Http {
 public:
  explicit Http(HttpOptions options = {});
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  // Tries once. Any status is an answer. Errors: kUnavailable for what may pass (no connection, reset,
  // stall), kCancelled, kAborted by on_body, kFailedPrecondition for a certificate that does not fit,
  // kInvalidArgument for an invalid URL, kPermissionDenied if a secret (request.secret, or one in the
  // headers) may not go there, kResourceExhausted for a body beyond max_body. No error or log line contains a
  // header.
  base::Result<HttpResponse> once(const HttpRequest& request);
  // Tries once and returns passing failures as errors: kUnavailable for 408, 429 and 5xx too. `what` begins
  // the messages.
  base::Result<HttpResponse> try_once(const HttpRequest& request, const std::string& what);
  // Tries again on kUnavailable, 408, 429 and 5xx. `what` begins the messages. Not for on_body.
  base::Result<HttpResponse> send(const HttpRequest& request, const std::string& what);

  const HttpOptions& options() const { return options_; }
  Backoff backoff(const std::atomic<bool>* cancelled = nullptr) const {
    return Backoff(options_.retry, options_.clock, cancelled);
  }

 private:
  struct Handles;
  HttpOptions options_;
  std::unique_ptr<Handles> handles_;
};

// Returns true for 408, 429 and 5xx, except 501, 505 and 507.
bool is_transient(int status);
// Returns when the server sent its answer, by its Date header, in seconds since 1970.
std::optional<double> date_of(const HttpResponse& response);
// Returns the seconds of Retry-After, given as a number or as a date.
std::optional<double> retry_after(const HttpResponse& response);
// Returns the error for a status: the code that fits, and the server's shortened text.
Error status_error(const HttpResponse& response, const std::string& what);
// Calls `send_once` until its answer or its error is not a passing one, with the waits of `again`.
base::Result<HttpResponse> send_until_final(Backoff again, const std::string& what,
                                            const std::function<base::Result<HttpResponse>()>& send_once);

// Encodes paths and queries: all characters but letters, digits and -_.~ as %XX.
std::string percent_encode(std::string_view text);
std::string percent_encode_path(const std::string& path);  // as above, but keeps /
std::string percent_decode(std::string_view text);

}  // namespace sluice::cloud
