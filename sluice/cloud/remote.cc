#include <algorithm>

#include "sluice/base/text/number.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/object_reader.h"

namespace sluice::cloud {
namespace {

// Returns 1234 for "bytes 0-0/1234"; an empty file has "bytes */0".
std::optional<std::uint64_t> total_of(const std::string& content_range) {
  const std::size_t slash = content_range.find('/');
  if (slash == std::string::npos) return std::nullopt;
  return base::number_of<std::uint64_t>(std::string_view(content_range).substr(slash + 1));
}

std::optional<std::uint64_t> length_of(const HttpResponse& response) {
  const auto text = response.header("content-length");
  return text ? base::number_of<std::uint64_t>(*text) : std::nullopt;
}

// Returns a strong ETag, else the date: If-Range accepts both.
std::string version_of(const HttpResponse& response) {
  const auto tag = response.header("etag");
  if (tag && !base::starts_with(*tag, "W/")) return *tag;
  return response.header("last-modified").value_or("");
}

base::Result<Remote> describe(Remote remote, const HttpResponse& head) {
  remote.version = version_of(head);
  if (!remote.version.empty()) remote.condition = "If-Range: " + remote.version;
  if (head.status == 206 || head.status == 416) {
    const auto total = total_of(head.header("content-range").value_or(""));
    if (head.status == 416 && total != 0) return tl::unexpected<Error>(status_error(head, remote.name));
    remote.size_known = total.has_value();
    remote.ranges = total.has_value();
    remote.size = total.value_or(0);
    return remote;
  }
  const auto length = length_of(head);
  remote.ranges = false;
  remote.size_known = length.has_value();
  remote.size = length.value_or(0);
  return remote;
}

// Returns the http(s) client of this process: one pool of connections for all.
base::Result<std::shared_ptr<Http>> shared_http() {
  static std::mutex mutex;
  static auto& http = *new std::shared_ptr<Http>;  // kept until the process ends
  const std::lock_guard lock(mutex);
  if (!http) {
    HttpOptions options;
    SLUICE_TRY(options.retry, retry_policy_of_environment());
    http = std::make_shared<Http>(options);
  }
  return http;
}

}  // namespace

base::Result<Remote> find_page(std::shared_ptr<Http> http, const std::string& url,
                               const std::atomic<bool>* cancelled) {
  Remote remote;
  remote.name = base::shown_urls(url);
  remote.address = url;
  remote.access.http = std::move(http);
  // Requests one byte: a server with ranges reports the whole length with it; any other transfer ends after
  // the header. (Signed addresses and some servers refuse HEAD.)
  HttpRequest request;
  request.url = url;
  request.headers = {"Range: bytes=0-0", "Accept-Encoding: identity"};
  request.follow_redirects = true;
  request.cancelled = cancelled;
  Backoff again = remote.access.http->backoff(cancelled);
  while (true) {
    std::optional<HttpResponse> head;
    request.on_body = [&](const HttpResponse& response, const char*, std::size_t) {
      head = response;
      return response.status == 206;
    };
    auto response = remote.access.http->once(request);
    if (response) head = std::move(*response);
    if (head && (head->status == 200 || head->status == 206 || head->status == 416))
      return describe(remote, *head);
    if (head && !is_transient(head->status)) return tl::unexpected<Error>(status_error(*head, remote.name));
    if (!head && response.error().code() != Code::kUnavailable) return base::fail_at(response, remote.name);
    const Error cause = head ? status_error(*head, remote.name)
                             : Error(Code::kUnavailable, remote.name + ": " + response.error().what());
    SLUICE_OK(again.wait(cause, head ? retry_after(*head) : std::nullopt));
  }
}

base::Result<Remote> find_remote(const std::string& url, const std::atomic<bool>* cancelled) {
  if (!is_object_url(url)) {
    SLUICE_TRY(auto http, shared_http());
    return find_page(std::move(http), url, cancelled);
  }
  SLUICE_TRY(const ObjectName name, parse_object_url(url));
  if (name.object.empty() || base::ends_with(name.object, "/"))
    return base::fail(Code::kInvalidArgument, "'", url,
                      "' is a folder: expected an object; to read all shards in it, "
                      "write '",
                      url, base::ends_with(url, "/") ? "*.tar'" : "/*.tar'");
  SLUICE_TRY(const Store* store, store_of(name));
  return store->find(name, cancelled);
}

}  // namespace sluice::cloud
