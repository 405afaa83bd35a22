#include "sluice/cloud/stores/aws_signature.h"

#include <algorithm>
#include <map>

#include "sluice/base/files/secret.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/strings.h"

namespace sluice::cloud {
namespace {

struct Url {
  std::string host, path, query;
};

Url split_url(const std::string& url) {
  const std::size_t host = url.find("://") + 3;
  const std::size_t query = std::min(url.find('?', host), url.size());
  const std::size_t path = std::min(url.find('/', host), query);
  return {url.substr(host, path - host), path == query ? "/" : url.substr(path, query - path),
          query == url.size() ? "" : url.substr(query + 1)};
}

// Sorts the parameters by name; "uploads" becomes "uploads=".
std::string canonical_query(const std::string& query) {
  if (query.empty()) return "";
  auto parts = base::split(query, '&');
  for (std::string& part : parts)
    if (part.find('=') == std::string::npos) part += '=';
  std::sort(parts.begin(), parts.end());
  return base::join(parts, "&");
}

}  // namespace

void sign_for_aws(HttpRequest& request, const AwsKeys& keys, const std::string& region,
                  const std::string& service, std::time_t now) {
  std::tm utc{};
  gmtime_r(&now, &utc);
  char time[32];
  std::strftime(time, sizeof time, "%Y%m%dT%H%M%SZ", &utc);
  const std::string day(time, 8);
  const std::string content = base::hexadecimal(base::sha256(request.body));
  request.headers.push_back(std::string("x-amz-date: ") + time);
  request.headers.push_back("x-amz-content-sha256: " + content);
  if (!keys.session.empty()) request.headers.push_back("x-amz-security-token: " + keys.session);

  const Url url = split_url(request.url);
  std::map<std::string, std::string> headers = {{"host", url.host}};
  for (const std::string& header : request.headers) {
    const std::size_t colon = header.find(':');
    const std::string name = base::lower_case(header.substr(0, colon));
    if (base::starts_with(name, "x-amz-"))
      headers[name] = base::trim(std::string_view(header).substr(colon + 1));
  }
  std::string canonical_headers, names;
  for (const auto& [name, value] : headers) {
    canonical_headers += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical = base::str(request.method, "\n", url.path, "\n", canonical_query(url.query),
                                          "\n", canonical_headers, "\n", names, "\n", content);
  const std::string scope = base::str(day, "/", region, "/", service, "/aws4_request");
  const std::string text =
      base::str("AWS4-HMAC-SHA256\n", time, "\n", scope, "\n", base::hexadecimal(base::sha256(canonical)));
  std::string key = "AWS4" + keys.secret;
  for (const std::string& part : {day, region, service, std::string("aws4_request")})
    key = base::hmac_sha256(key, part);
  request.headers.push_back(base::str("Authorization: AWS4-HMAC-SHA256 Credential=", keys.id, "/", scope,
                                      ", SignedHeaders=", names,
                                      ", Signature=", base::hexadecimal(base::hmac_sha256(key, text))));
}

}  // namespace sluice::cloud
