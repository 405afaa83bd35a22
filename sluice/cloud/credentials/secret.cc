#include "sluice/cloud/credentials/secret.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/base/text/strings.h"

namespace sluice::cloud {
namespace {

// Old key files name this host; it belongs to Google.
constexpr char kFormerTokenHost[] = "accounts.google.com";

struct UrlParts {
  std::string scheme, host, user;
};

// Parses with libcurl, so that the checked host is the one connected to: "https://googleapis.com@elsewhere/"
// is elsewhere.
base::Result<UrlParts> parts_of(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), &curl_url_cleanup);
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), CURLU_GUESS_SCHEME) != CURLUE_OK)
    return base::fail(Code::kInvalidArgument, "'", base::shown_urls(url), "' is not a URL");
  const auto part = [&](CURLUPart which) {
    char* text = nullptr;
    if (curl_url_get(parsed.get(), which, &text, 0) != CURLUE_OK) return std::string();
    std::string copy(text);
    curl_free(text);
    return base::lower_case(copy);
  };
  return UrlParts{part(CURLUPART_SCHEME), part(CURLUPART_HOST),
                  part(CURLUPART_USER) + part(CURLUPART_PASSWORD)};
}

bool is_numeric(const std::string& host) {
  return std::all_of(host.begin(), host.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

bool is_agent(const std::string& host) {
  return (base::starts_with(host, "169.254.") && is_numeric(host)) || host == "[fd00:ec2::23]" ||
         host == "[fd00:ec2::254]";
}

bool is_of(const std::string& host, const std::string& domain) {
  return domain.empty() || host == domain || base::ends_with(host, "." + domain) ||
         (domain == "googleapis.com" && host == kFormerTokenHost);
}

}  // namespace

base::Result<std::string> host_of_url(const std::string& url) {
  SLUICE_TRY(const UrlParts parts, parts_of(url));
  return parts.host;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "[::1]" || (base::starts_with(host, "127.") && is_numeric(host));
}

bool is_https(const std::string& url) {
  const auto parts = parts_of(url);
  return parts && parts->scheme == "https";
}

bool has_user(const std::string& url) {
  const auto parts = parts_of(url);
  return parts && !parts->user.empty();
}

base::Status may_send_secret(const std::string& url, const Secret& secret) {
  SLUICE_TRY(const UrlParts parts, parts_of(url));
  if (is_loopback(parts.host) || (secret.to_agent && is_agent(parts.host))) return {};
  const bool secure = parts.scheme == "https", known = is_of(parts.host, secret.hosts);
  if (secure && known) return {};
  const std::string by = secret.named_by.empty() ? "" : " (" + secret.named_by + " leads there)";
  // Messages must not contain the user and the query of an address.
  const std::string place = parts.scheme + "://" + parts.host;
  if (secret.hosts.empty())
    return base::fail(Code::kPermissionDenied, secret.what, " would go to ", place, " unencrypted", by,
                      ": use https, or a tunnel to this machine (ssh -L 9000:127.0.0.1:9000 HOST, then "
                      "http://127.0.0.1:9000)");
  return base::fail(Code::kPermissionDenied, secret.what, ": it would go to ", place,
                    secure ? "" : ", unencrypted", by,
                    ". Tokens and keys are sent only by https, and only to hosts of ", secret.hosts,
                    " or to this machine: check the address, or make the credentials again with gcloud");
}

Secret secret_in_headers(const std::vector<std::string>& headers) {
  static constexpr std::string_view kSecret[] = {"authorization", "proxy-authorization", "cookie",
                                                 "x-amz-security-token", "x-identity-header"};
  for (const std::string& header : headers) {
    const std::string name = base::lower_case(base::trim(header.substr(0, header.find(':'))));
    // This is a signature of one request: the key that made it stays here.
    if (base::trim(header.substr(header.find(':') + 1)).starts_with("AWS4-HMAC-SHA256 ")) continue;
    if (std::find(std::begin(kSecret), std::end(kSecret), name) != std::end(kSecret))
      return {"the request's " + header.substr(0, header.find(':'))};
  }
  return {};
}

base::Status may_redirect(const std::string& from, const std::string& to) {
  if (!is_https(from) || is_https(to) || base::starts_with(to, "/")) return {};
  return base::fail(
      Code::kPermissionDenied, base::shown_urls(from),
      ": the server leads from https on to an address without it, which is not followed: whoever is "
      "on the way could read and change the bytes");
}

}  // namespace sluice::cloud
