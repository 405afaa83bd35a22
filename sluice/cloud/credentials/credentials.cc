#include "sluice/cloud/credentials/credentials.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/log.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/credentials/metadata.h"
#include "sluice/cloud/credentials/secret.h"
#include "sluice/cloud/credentials/token_request.h"

namespace sluice::cloud {
namespace {

constexpr double kFreshSeconds = 225;  // as in Google's own clients; the metadata server renews at about 240
constexpr double kRenewAgain = 10;     // seconds
constexpr char kTokenUri[] = "https://oauth2.googleapis.com/token";

constexpr char kLogin[] = "gcloud auth application-default login";

// Returns the address that tokens come from, or an error if it may not get the secrets that are sent there.
base::Result<std::string> token_uri(const std::string& path, const nlohmann::json& json,
                                    const CredentialFacts& facts) {
  const std::string given = text_field(json, "token_uri");
  if (given.empty()) return std::string(kTokenUri);
  SLUICE_OK(may_send_secret(given, {"the credentials " + path + ": token_uri", "", facts.universe}));
  return given;
}

base::Result<std::shared_ptr<Credentials>> of_user(std::shared_ptr<Http> http, const std::string& path,
                                                   const nlohmann::json& json) {
  for (const char* name : {"client_id", "client_secret", "refresh_token"})
    if (text_field(json, name).empty()) return lacks_text(path, name);
  const CredentialFacts facts = facts_of_file(json);
  SLUICE_TRY(const std::string uri, token_uri(path, json, facts));
  const std::string form =
      "grant_type=refresh_token&client_id=" + percent_encode(text_field(json, "client_id")) +
      "&client_secret=" + percent_encode(text_field(json, "client_secret")) +
      "&refresh_token=" + percent_encode(text_field(json, "refresh_token"));
  const std::string who = "the user's credentials in " + path;
  const Clock clock = http->options().clock;
  const std::string advice = base::str("They have expired or were revoked: log in again with ", kLogin);
  return std::make_shared<Credentials>(
      who, [=] { return post_for_token(*http, uri, form, {}, who, advice); }, clock, facts);
}

base::Result<std::shared_ptr<Credentials>> of_service_account(std::shared_ptr<Http> http,
                                                              const std::string& path,
                                                              const nlohmann::json& json) {
  for (const char* name : {"client_email", "private_key"})
    if (text_field(json, name).empty()) return lacks_text(path, name);
  const std::string email = text_field(json, "client_email"), key = text_field(json, "private_key"),
                    id = text_field(json, "private_key_id");
  const CredentialFacts facts = facts_of_file(json);
  SLUICE_TRY(const std::string uri, token_uri(path, json, facts));
  const std::string who = "the service account " + email + " (" + path + ")";
  // A key that cannot sign is reported now, not at the first request.
  if (auto probe = signed_assertion(email, id, key, uri, base::wall_seconds()); !probe)
    return base::fail_at(probe, "the credentials ", path);
  const auto fetch = [=]() -> base::Result<Token> {
    SLUICE_TRY(const std::string assertion, signed_assertion(email, id, key, uri, base::wall_seconds()));
    return post_for_token(
        *http, uri, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" + assertion,
        {}, who,
        "The key may have been deleted, or this machine's clock is wrong: make a new key (gcloud iam "
        "service-accounts keys create), or log in with gcloud auth application-default login");
  };
  return std::make_shared<Credentials>(who, fetch, http->options().clock, facts);
}

std::shared_ptr<Credentials> of_metadata_server(std::shared_ptr<Http> http) {
  const std::string who = "the machine's service account";
  const auto fetch = [=]() -> base::Result<Token> {
    auto answer = metadata_once(*http, "instance/service-accounts/default/token");
    if (!answer)
      return base::fail_at(answer, "no token for ", who,
                           " (was the machine made without one? give it a service account, or set "
                           "GOOGLE_APPLICATION_CREDENTIALS)");
    return parse_token(*answer, who);
  };
  return std::make_shared<Credentials>(who, fetch, http->options().clock);
}

std::string gcloud_file() {
  const auto folder = base::environment("CLOUDSDK_CONFIG");
  return base::join_path(folder ? *folder : base::expand_home("~/.config/gcloud"),
                         "application_default_credentials.json");
}

base::Result<std::shared_ptr<Credentials>> of_file(std::shared_ptr<Http> http, const std::string& path) {
  SLUICE_TRY(const std::string text, base::read_file(path));
  return credentials_of_json(std::move(http), path, text);
}

// Returns the places where no credentials were found.
std::string searched() {
  return base::str("GOOGLE_APPLICATION_CREDENTIALS is not set, ", gcloud_file(), " is not there, ",
                   base::environment_flag("NO_GCE_CHECK", false)
                       ? "and NO_GCE_CHECK passes over the metadata server"
                       : "and no metadata server of Google's answers");
}

}  // namespace

base::Result<std::string> Credentials::header() {
  if (anonymous()) return std::string();
  const std::lock_guard lock(mutex_);
  const double now = clock_.now();
  if (!header_.empty() && now < renew_) return header_;
  auto token = fetch_();
  if (token) {
    header_ = "Authorization: Bearer " + token->value;
    expires_ = clock_.now() + token->seconds;
    renew_ = expires_ - std::min(kFreshSeconds, token->seconds / 2);
    return header_;
  }
  if (!header_.empty() && now < expires_) {
    base::warn("the token could not be renewed yet: ", token.error().what());
    renew_ = now + kRenewAgain;
    return header_;
  }
  return tl::unexpected<Error>(token.error());
}

void Credentials::reject(const std::string& header) {
  const std::lock_guard lock(mutex_);
  if (header == header_) header_.clear();
}

base::Status Credentials::may_go_to(const std::string& url) const {
  if (anonymous()) return {};
  return may_send_secret(url, secret());
}

std::shared_ptr<Credentials> anonymous_credentials() {
  return std::make_shared<Credentials>("nobody", nullptr);
}

base::Result<std::shared_ptr<Credentials>> credentials_of_json(std::shared_ptr<Http> http,
                                                               const std::string& path,
                                                               const std::string& text) {
  const auto json = base::parse_json(text);
  if (!json.is_object())
    return base::fail(Code::kInvalidArgument, "the credentials ", path, " are not a JSON object");
  const std::string type = text_field(json, "type");
  if (type == "authorized_user") return of_user(std::move(http), path, json);
  if (type == "service_account") return of_service_account(std::move(http), path, json);
  if (type == "impersonated_service_account") return impersonated_account(std::move(http), path, json);
  if (type == "external_account") return external_account(std::move(http), path, json);
  return base::fail(Code::kUnimplemented, "the credentials ", path, " are of type '", type,
                    "': expected authorized_user (", kLogin,
                    "), service_account, impersonated_service_account or external_account");
}

base::Result<std::string> google_endpoint_of_environment() {
  std::string endpoint = base::environment("SLUICE_GOOGLE_ENDPOINT").value_or("");
  while (base::ends_with(endpoint, "/")) endpoint.pop_back();
  if (endpoint.empty()) return endpoint;
  const auto host = host_of_url(endpoint);
  const bool plain = endpoint.find('/', std::string_view("http://").size()) == std::string::npos;
  if (!base::starts_with(endpoint, "http://") || !plain || !host || !is_loopback(*host) || has_user(endpoint))
    return base::fail(
        Code::kInvalidArgument, "SLUICE_GOOGLE_ENDPOINT=", base::shown_urls(endpoint),
        ": expected a server on this machine, http://127.0.0.1:PORT: tokens go to Google alone");
  return endpoint;
}

base::Result<std::shared_ptr<Credentials>> find_credentials(std::shared_ptr<Http> http) {
  if (const auto path = base::environment("GOOGLE_APPLICATION_CREDENTIALS")) {
    auto found = of_file(std::move(http), *path);
    if (!found && found.error().code() == Code::kNotFound)
      return base::fail(Code::kNotFound, "GOOGLE_APPLICATION_CREDENTIALS: ", found.error().what(),
                        ": name a file that is there, or unset the variable and run ", kLogin);
    if (!found) return base::fail_at(found, "GOOGLE_APPLICATION_CREDENTIALS");
    return found;
  }
  if (const std::string path = gcloud_file(); base::path_exists(path)) return of_file(std::move(http), path);
  if (on_google_cloud(*http)) return of_metadata_server(std::move(http));
  return std::make_shared<Credentials>("nobody (" + searched() + ")", nullptr);
}

}  // namespace sluice::cloud
