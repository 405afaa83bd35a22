#include "sluice/cloud/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "sluice/base/clock.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/certificates.h"

namespace sluice::cloud {
namespace {

constexpr std::size_t kMaxOfAnError = 64 << 10;
constexpr std::size_t kMaxOfHeaders = 256 << 10;  // of one answer, including its redirects
constexpr long kReceiveBytes = 256 << 10;         // fits in a core's L2 cache

struct Exchange {
  const HttpRequest* request;
  double stall_timeout;
  HttpResponse response = {};
  std::size_t sent = 0;
  // Stalls are measured here: libcurl's own measure would count the time that on_body takes.
  double window_start = base::monotonic_seconds();
  double window_bytes = 0;
  bool stalled = false, too_large = false;
  std::size_t header_bytes = 0;
};

std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  auto& response = exchange.response;
  exchange.header_bytes += size * count;
  exchange.too_large = exchange.header_bytes > kMaxOfHeaders;
  if (exchange.too_large) return 0;
  const std::string_view line = base::trim(std::string_view(bytes, size * count));
  const std::size_t colon = line.find(':');
  if (base::starts_with(line, "HTTP/")) {
    response.headers.clear();  // headers of "100 Continue" or of a redirect
    const std::size_t space = line.find(' ');
    response.status = 0;
    if (space != std::string_view::npos)
      std::from_chars(line.data() + space + 1, line.data() + line.size(), response.status);
  } else if (colon != std::string_view::npos) {
    response.headers.emplace_back(base::lower_case(line.substr(0, colon)),
                                  base::trim(line.substr(colon + 1)));
  }
  return size * count;
}

std::size_t on_bytes(char* bytes, std::size_t size, std::size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  auto& response = exchange.response;
  const std::size_t total = size * count;
  if (exchange.request->cancelled != nullptr && *exchange.request->cancelled) return 0;
  exchange.window_bytes += static_cast<double>(total);
  const bool good = response.status >= 200 && response.status < 300;
  if (good && exchange.request->on_body) {
    const double before = base::monotonic_seconds();
    const bool more = exchange.request->on_body(response, bytes, total);
    exchange.window_start += base::monotonic_seconds() - before;
    return more ? total : 0;
  }
  exchange.too_large = good && total > exchange.request->max_body - response.body.size();
  if (exchange.too_large) return 0;
  if (good)
    response.body.append(bytes, total);
  else
    response.body.append(bytes,
                         std::min(total, kMaxOfAnError - std::min(kMaxOfAnError, response.body.size())));
  return total;
}

std::size_t on_send(char* bytes, std::size_t size, std::size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  const std::size_t step = std::min(size * count, exchange.request->body.size() - exchange.sent);
  std::memcpy(bytes, exchange.request->body.data() + exchange.sent, step);
  exchange.sent += step;
  exchange.window_bytes += static_cast<double>(step);
  return step;
}

// Called only if libcurl has to send a body again (the server had closed the connection, or a redirect).
int on_seek(void* context, curl_off_t offset, int origin) {
  auto& exchange = *static_cast<Exchange*>(context);
  if (origin != SEEK_SET || offset < 0 || static_cast<std::size_t>(offset) > exchange.request->body.size())
    return CURL_SEEKFUNC_FAIL;
  exchange.sent = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

// Called when bytes arrive, else once a second; a result other than 0 ends the transfer.
int on_progress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& exchange = *static_cast<Exchange*>(context);
  if (exchange.request->cancelled != nullptr && *exchange.request->cancelled) return 1;
  const double now = base::monotonic_seconds();
  if (now - exchange.window_start < exchange.stall_timeout) return 0;
  exchange.stalled = exchange.window_bytes < exchange.request->slowest * exchange.stall_timeout;
  exchange.window_start = now;
  exchange.window_bytes = 0;
  return exchange.stalled ? 1 : 0;
}

void set_method(CURL* curl, const HttpRequest& request) {
  const bool has_body = request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (request.method == "HEAD") curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  if (has_body) {
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  if (has_body || request.method == "DELETE")
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

void set_options(CURL* curl, const HttpOptions& options, Exchange& exchange, bool secret) {
  const HttpRequest& request = *exchange.request;
  const bool https = is_https(request.url);
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, https ? "https" : "http,https");
  const auto version = request.http2 ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : CURL_HTTP_VERSION_1_1;
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(version));
  // libcurl 7.88 cannot reuse such a connection: "Error in the HTTP2 framing layer".
  curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, request.http2 ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, request.follow_redirects && !secret ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kReceiveBytes);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout * 1e3));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.total_timeout * 1e3));
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, request.exact_path ? 1L : 0L);
  // A proxy is not this machine: an unencrypted request with a secret goes directly.
  if (request.direct || (secret && !https)) curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  if (const auto file = certificate_file()) curl_easy_setopt(curl, CURLOPT_CAINFO, file->c_str());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "sluice");
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_send);
  curl_easy_setopt(curl, CURLOPT_READDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_seek);
  curl_easy_setopt(curl, CURLOPT_SEEKDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
  set_method(curl, request);
}

Error transfer_error(CURLcode status, const char* reason, const Exchange& exchange) {
  const HttpRequest& request = *exchange.request;
  const int http_status = exchange.response.status;
  if (exchange.stalled)
    return Error(Code::kUnavailable,
                 base::str(request.method, " ", base::shown_urls(request.url), ": stalled: less than ",
                           request.slowest / 1000, " kB/s for ", exchange.stall_timeout, " s"));
  if (exchange.too_large)
    return Error(
        Code::kResourceExhausted,
        base::str(request.method, " ", base::shown_urls(request.url), ": the answer is larger than ",
                  exchange.header_bytes > kMaxOfHeaders ? kMaxOfHeaders >> 10 : request.max_body >> 10,
                  " KiB, which no answer of this kind is: is the address right?"));
  if (status == CURLE_UNSUPPORTED_PROTOCOL && is_https(request.url))
    return Error(
        Code::kPermissionDenied,
        base::str(request.method, " ", base::shown_urls(request.url),
                  ": the server leads from https on to an address without it, which is not followed"));
  const bool stopped = status == CURLE_ABORTED_BY_CALLBACK || status == CURLE_WRITE_ERROR;
  const bool certificate = status == CURLE_PEER_FAILED_VERIFICATION || status == CURLE_SSL_CACERT_BADFILE;
  Code code = Code::kUnavailable;
  if (stopped && request.cancelled != nullptr && *request.cancelled)
    code = Code::kCancelled;
  else if (status == CURLE_WRITE_ERROR)
    code = Code::kAborted;
  else if (certificate)
    code = Code::kFailedPrecondition;
  else if (status == CURLE_URL_MALFORMAT || status == CURLE_UNSUPPORTED_PROTOCOL)
    code = Code::kInvalidArgument;
  const std::string after = http_status > 0 ? base::str(" after status ", http_status) : "";
  return Error(code, base::str(request.method, " ", base::shown_urls(request.url), ": ",
                               reason[0] != '\0' ? reason : curl_easy_strerror(status), after,
                               certificate ? certificate_advice() : ""));
}

// Returns the error text in a body: Google's services answer in JSON, others with a line or a page.
std::string said_in(const std::string& body) {
  const auto json = base::parse_json(body);
  std::string said;
  const auto add = [&](const nlohmann::json& object, const char* key) {
    if (object.is_object() && object.contains(key) && object[key].is_string())
      said += (said.empty() ? "" : ": ") + object[key].get<std::string>();
  };
  add(json, "error");
  add(json, "error_description");
  if (json.is_object() && json.contains("error")) add(json["error"], "message");
  if (!json.is_object()) said = body.substr(0, 200);
  for (char& c : said)
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
  return std::string(base::trim(said));
}

}  // namespace

// Idle handles, each with its open connections; the last one used is used next.
struct Http::Handles {
  std::mutex mutex;
  std::vector<CURL*> idle;

  ~Handles() {
    for (CURL* curl : idle) curl_easy_cleanup(curl);
  }
  CURL* take() {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        CURL* curl = idle.back();
        idle.pop_back();
        return curl;
      }
    }
    return curl_easy_init();
  }
  void give_back(CURL* curl) {
    curl_easy_reset(curl);  // keeps the connections
    const std::lock_guard lock(mutex);
    idle.push_back(curl);
  }
};

Http::Http(HttpOptions options) : options_(std::move(options)), handles_(std::make_unique<Handles>()) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

Http::~Http() = default;

base::Result<HttpResponse> Http::once(const HttpRequest& request) {
  if (request.cancelled != nullptr && *request.cancelled)
    return cancelled_error(base::str(request.method, " ", base::shown_urls(request.url)));
  // Secrets leave only from here, for every store and service.
  Secret secret = request.secret;
  if (secret.what.empty()) secret = secret_in_headers(request.headers);
  if (!secret.what.empty()) SLUICE_OK(may_send_secret(request.url, secret));
  if (has_user(request.url))
    SLUICE_OK(may_send_secret(request.url, {"the user and the password of the address"}));
  CURL* curl = handles_->take();
  if (curl == nullptr) return base::fail(Code::kResourceExhausted, "libcurl gives no handle: out of memory?");
  Exchange exchange{&request, request.stall_timeout > 0 ? request.stall_timeout : options_.stall_timeout};
  set_options(curl, options_, exchange, !secret.what.empty());
  curl_slist* list = curl_slist_append(nullptr, "Expect:");  // no "100-continue" round trip
  for (const std::string& header : request.headers) list = curl_slist_append(list, header.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
  char reason[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
  const CURLcode status = curl_easy_perform(curl);
  curl_slist_free_all(list);
  handles_->give_back(curl);
  if (status != CURLE_OK) return tl::unexpected<Error>(transfer_error(status, reason, exchange));
  return std::move(exchange.response);
}

base::Result<HttpResponse> Http::try_once(const HttpRequest& request, const std::string& what) {
  auto response = once(request);
  if (!response) return base::fail_at(response, what);
  if (is_transient(response->status)) return tl::unexpected<Error>(status_error(*response, what));
  return response;
}

base::Result<HttpResponse> Http::send(const HttpRequest& request, const std::string& what) {
  return send_until_final(backoff(request.cancelled), what, [&] { return once(request); });
}

base::Result<HttpResponse> send_until_final(Backoff again, const std::string& what,
                                            const std::function<base::Result<HttpResponse>()>& send_once) {
  while (true) {
    auto response = send_once();
    if (response && !is_transient(response->status)) return response;
    if (!response && response.error().code() != Code::kUnavailable) return base::fail_at(response, what);
    const Error cause = response ? status_error(*response, what)
                                 : Error(Code::kUnavailable, base::str(what, ": ", response.error().what()));
    SLUICE_OK(again.wait(cause, response ? retry_after(*response) : std::nullopt));
  }
}

std::optional<std::string> HttpResponse::header(std::string_view name) const {
  for (auto it = headers.rbegin(); it != headers.rend(); ++it)
    if (it->first == name) return it->second;
  return std::nullopt;
}

bool is_transient(int status) {
  // A server that does not support (501, 505) or has no room for (507) a request won't a second later.
  if (status == 501 || status == 505 || status == 507) return false;
  return status == 408 || status == 429 || (status >= 500 && status < 600);
}

std::optional<double> date_of(const HttpResponse& response) {
  const auto text = response.header("date");
  const std::time_t date = text ? curl_getdate(text->c_str(), nullptr) : -1;
  return date < 0 ? std::nullopt : std::optional(static_cast<double>(date));
}

std::optional<double> retry_after(const HttpResponse& response) {
  const auto text = response.header("retry-after");
  if (!text) return std::nullopt;
  const auto seconds = base::number_of<double>(*text);
  if (seconds && *seconds >= 0) return seconds;
  const std::time_t date = curl_getdate(text->c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return std::max(0.0, static_cast<double>(date - std::time(nullptr)));
}

Error status_error(const HttpResponse& response, const std::string& what) {
  Code code = Code::kUnknown;
  const int status = response.status;
  if (status == 400 || status == 405) code = Code::kInvalidArgument;
  if (status == 401 || status == 403) code = Code::kPermissionDenied;
  if (status == 404 || status == 410) code = Code::kNotFound;
  if (status == 409) code = Code::kAlreadyExists;
  if (status == 412) code = Code::kFailedPrecondition;
  if (status == 416) code = Code::kOutOfRange;
  if (is_transient(status)) code = Code::kUnavailable;
  // Google's services describe the error in JSON.
  const std::string said = said_in(response.body);
  return Error(code,
               base::str(what, ": the server answered with status ", status, said.empty() ? "" : ": ", said));
}

std::string percent_encode(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "-_.~";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((std::isalnum(byte) != 0 && byte < 0x80) || kPlain.find(c) != std::string_view::npos) {
      result += c;
    } else {
      result += '%';
      result += kDigits[byte >> 4];
      result += kDigits[byte & 15];
    }
  }
  return result;
}

std::string percent_encode_path(const std::string& path) {
  auto parts = base::split(path, '/');
  for (std::string& part : parts) part = percent_encode(part);
  return base::join(parts, "/");
}

std::string percent_decode(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      result += static_cast<char>(byte);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace sluice::cloud
