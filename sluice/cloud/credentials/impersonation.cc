// Gets a service account's tokens for an identity that may request them (iamcredentials generateAccessToken).
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "sluice/base/clock.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/credentials/token_request.h"

namespace sluice::cloud {
namespace {

constexpr double kLongest = 3600;  // seconds; more requires a policy of the organisation

// Returns "trainer@p.iam.gserviceaccount.com" of "…/serviceAccounts/trainer@…:generateAccessToken"; "" for
// others.
std::string account_of(const std::string& url) {
  constexpr std::string_view kBefore = "/serviceAccounts/", kAfter = ":generateAccessToken";
  const std::size_t at = url.find(kBefore);
  if (at == std::string::npos || !base::ends_with(url, kAfter)) return "";
  const std::size_t begin = at + kBefore.size();
  return url.substr(begin, url.size() - kAfter.size() - begin);
}

// Returns the seconds from now to "2026-11-25T03:00:00Z"; `otherwise` if the text has another form.
double seconds_until(const std::string& time, double otherwise) {
  std::tm parts = {};
  if (std::sscanf(time.c_str(), "%d-%d-%dT%d:%d:%d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6)
    return otherwise;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return std::clamp(static_cast<double>(timegm(&parts)) - base::wall_seconds(), 0.0, otherwise);
}

struct Impersonation {
  std::shared_ptr<Http> http;
  std::shared_ptr<Credentials> source;
  std::string url, email, who, body;
  double lifetime;

  base::Result<HttpResponse> ask(const std::string& authorization) const {
    HttpRequest request;
    request.method = "POST";
    request.url = url;
    request.headers = {authorization, "Content-Type: application/json"};
    if (!source->quota_project().empty())
      request.headers.push_back("x-goog-user-project: " + source->quota_project());
    request.body = body;
    request.secret = source->secret();
    return http->try_once(request, "a token for " + who);
  }

  base::Result<Token> fetch() const {
    auto authorization = source->header();
    if (!authorization) return base::fail_at(authorization, who);
    SLUICE_TRY(HttpResponse response, ask(*authorization));
    if (response.status == 401) {  // the source's token may have expired early: try once with a new one
      source->reject(*authorization);
      SLUICE_TRY(const std::string again, source->header());
      SLUICE_TRY(response, ask(again));
    }
    if (response.status != 200)
      return token_refused(response, who,
                           "The request was made by " + source->who() +
                               ": give it the role Service Account Token Creator on " + email +
                               ", and enable iamcredentials.googleapis.com");
    const auto json = base::parse_json(response.body);
    const std::string token = json.is_object() ? text_field(json, "accessToken") : "";
    if (token.empty() || token.find_first_of("\r\n") != std::string::npos)
      return base::fail(Code::kUnknown, "no token for ", who, ": the answer has no accessToken");
    return Token{token, seconds_until(text_field(json, "expireTime"), lifetime)};
  }
};

}  // namespace

base::Result<std::shared_ptr<Credentials>> impersonate(std::shared_ptr<Http> http, const std::string& path,
                                                       const std::string& url,
                                                       std::shared_ptr<Credentials> source,
                                                       const nlohmann::json& json) {
  const std::string email = account_of(url);
  if (email.empty())
    return base::fail(Code::kInvalidArgument, "the credentials ", path,
                      ": service_account_impersonation_url is '", url,
                      "': expected …/serviceAccounts/EMAIL:generateAccessToken");
  const CredentialFacts facts = facts_of_file(json);
  SLUICE_OK(may_send_secret(url, {"the credentials " + path + ": a token for " + email, "", facts.universe}));
  double lifetime = kLongest;
  if (const auto options = json.find("service_account_impersonation");
      options != json.end() && options->contains("token_lifetime_seconds") &&
      (*options)["token_lifetime_seconds"].is_number())
    lifetime = (*options)["token_lifetime_seconds"].get<double>();
  nlohmann::json body = {{"scope", {kCloudScope}}, {"lifetime", base::str(lifetime, "s")}};
  if (const auto delegates = json.find("delegates"); delegates != json.end() && delegates->is_array())
    body["delegates"] = *delegates;
  const std::string who = "the service account " + email + " (impersonated, " + path + ")";
  const Clock clock = http->options().clock;
  const Impersonation account{std::move(http), std::move(source), url, email, who, body.dump(), lifetime};
  return std::make_shared<Credentials>(
      who, [account] { return account.fetch(); }, clock, facts);
}

base::Result<std::shared_ptr<Credentials>> impersonated_account(std::shared_ptr<Http> http,
                                                                const std::string& path,
                                                                const nlohmann::json& json) {
  const std::string url = text_field(json, "service_account_impersonation_url");
  if (url.empty()) return lacks_text(path, "service_account_impersonation_url");
  const auto inner = json.find("source_credentials");
  if (inner == json.end() || !inner->is_object())
    return base::fail(Code::kInvalidArgument, "the credentials ", path,
                      " lack source_credentials: make them again with gcloud auth application-default login "
                      "--impersonate-service-account=EMAIL");
  if (text_field(*inner, "type") == "impersonated_service_account")
    return base::fail(Code::kInvalidArgument, "the credentials ", path,
                      ": source_credentials are impersonated themselves: list the accounts in delegates");
  nlohmann::json source_json = *inner;
  if (!source_json.contains("quota_project_id") && json.contains("quota_project_id"))
    source_json["quota_project_id"] = json["quota_project_id"];
  SLUICE_TRY(auto source, credentials_of_json(http, path, source_json.dump()));
  return impersonate(std::move(http), path, url, std::move(source), json);
}

}  // namespace sluice::cloud
