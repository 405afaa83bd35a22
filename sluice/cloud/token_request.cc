#include "sluice/cloud/token_request.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <nlohmann/json.hpp>

namespace sluice::cloud {
namespace {

// Key files of former years name this host; it is Google's.
constexpr char kFormerTokenHost[] = "accounts.google.com";

struct UrlParts {
  std::string scheme, host;
};

// By libcurl, so that what is checked is what is connected to: "https://googleapis.com@elsewhere/" is
// elsewhere.
base::Result<UrlParts> parts_of(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), &curl_url_cleanup);
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
    return base::fail(Code::kInvalidArgument, "'", url, "' is no URL");
  const auto part = [&](CURLUPart which) {
    char* text = nullptr;
    if (curl_url_get(parsed.get(), which, &text, 0) != CURLUE_OK) return std::string();
    std::string copy(text);
    curl_free(text);
    for (char& c : copy) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return copy;
  };
  return UrlParts{part(CURLUPART_SCHEME), part(CURLUPART_HOST)};
}

// The user and the query of an address are not for messages.
std::string place_of(const UrlParts& parts) { return parts.scheme + "://" + parts.host; }

}  // namespace

base::Result<std::string> host_of_url(const std::string& url) {
  SLUICE_TRY(const UrlParts parts, parts_of(url));
  return parts.host;
}

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host == "[::1]") return true;
  if (!base::starts_with(host, "127.")) return false;
  return std::all_of(host.begin(), host.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

base::Status may_send_secret(const std::string& url, const std::string& universe, const std::string& what) {
  SLUICE_TRY(const UrlParts parts, parts_of(url));
  if (is_loopback(parts.host)) return {};
  const bool known =
      parts.host == universe || base::ends_with(parts.host, "." + universe) || parts.host == kFormerTokenHost;
  if (parts.scheme == "https" && known) return {};
  return base::fail(Code::kPermissionDenied, what, ": it would go to ", place_of(parts),
                    known ? ", unencrypted" : "",
                    ". Tokens and keys are sent only by https, and only to hosts of ", universe,
                    " or to this machine: check the address, or make the credentials again with gcloud");
}

std::string text_field(const nlohmann::json& json, const char* name) {
  return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : std::string();
}

base::Result<Token> parse_token(const std::string& body, const std::string& who) {
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  const std::string value = json.is_object() ? text_field(json, "access_token") : "";
  if (value.empty())
    return base::fail(Code::kUnknown, "no token for ", who, ": the answer has no access_token");
  if (value.find_first_of("\r\n") != std::string::npos)
    return base::fail(Code::kUnknown, "no token for ", who, ": it holds a line break");
  const double seconds =
      json.contains("expires_in") && json["expires_in"].is_number() ? json["expires_in"].get<double>() : 3600;
  return Token{value, seconds};
}

tl::unexpected<Error> token_refused(const HttpResponse& response, const std::string& who,
                                    const std::string& advice) {
  const Error error = status_error(response, "a token for " + who);
  return base::fail(Code::kPermissionDenied, error.what(), ". ", advice);
}

base::Result<Token> post_for_token(Http& http, const std::string& url, const std::string& form,
                                   const std::vector<std::string>& headers, const std::string& who,
                                   const std::string& advice) {
  HttpRequest request;
  request.method = "POST";
  request.url = url;
  request.headers = headers;
  request.headers.push_back("Content-Type: application/x-www-form-urlencoded");
  request.body = form;
  SLUICE_TRY(const std::string host, host_of_url(url));
  request.direct = is_loopback(host);
  SLUICE_TRY(const HttpResponse response, http.try_once(request, "a token for " + who));
  if (response.status != 200) return token_refused(response, who, advice);
  return parse_token(response.body, who);
}

tl::unexpected<Error> lacks_text(const std::string& path, const char* name) {
  return base::fail(Code::kInvalidArgument, "the credentials ", path, " lack the text '", name,
                    "': make them again, for example with gcloud auth application-default login");
}

CredentialFacts facts_of_file(const nlohmann::json& json) {
  CredentialFacts facts;
  facts.quota_project = text_field(json, "quota_project_id");
  if (const std::string universe = text_field(json, "universe_domain"); !universe.empty())
    facts.universe = universe;
  return facts;
}

}  // namespace sluice::cloud
