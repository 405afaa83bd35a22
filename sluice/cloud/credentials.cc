#include "sluice/cloud/credentials.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/file.h"
#include "sluice/base/log.h"
#include "sluice/cloud/metadata.h"

namespace sluice::cloud {
namespace {

constexpr double kFreshSeconds = 225;  // as Google's own clients; the metadata server renews at about 240
constexpr char kTokenUri[] = "https://oauth2.googleapis.com/token";

std::string field(const nlohmann::json& json, const char* name) {
  return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : std::string();
}

base::Result<Token> parse_token(const std::string& body, const std::string& who) {
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  const std::string value = json.is_object() ? field(json, "access_token") : "";
  if (value.empty())
    return base::fail(Code::kUnknown, "no token for ", who, ": the answer has no access_token");
  if (value.find_first_of("\r\n") != std::string::npos)
    return base::fail(Code::kUnknown, "no token for ", who, ": it holds a line break");
  const double seconds =
      json.contains("expires_in") && json["expires_in"].is_number() ? json["expires_in"].get<double>() : 3600;
  return Token{value, seconds};
}

base::Result<Token> post_form(Http& http, const std::string& uri, const std::string& form,
                              const std::string& who) {
  HttpRequest request;
  request.method = "POST";
  request.url = uri;
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.body = form;
  SLUICE_TRY(const HttpResponse response, http.send(request, "a token for " + who));
  if (response.status != 200) {
    const Error error = status_error(response, "a token for " + who);
    return base::fail(Code::kPermissionDenied, error.what(),
                      ". Make new credentials: gcloud auth application-default login, or a new key file");
  }
  return parse_token(response.body, who);
}

tl::unexpected<Error> lacks(const std::string& path, const char* name) {
  return base::fail(Code::kInvalidArgument, "the credentials ", path, " lack the text '", name,
                    "': make them again, for example with gcloud auth application-default login");
}

base::Result<std::shared_ptr<Credentials>> of_user(std::shared_ptr<Http> http, const std::string& path,
                                                   const nlohmann::json& json) {
  for (const char* name : {"client_id", "client_secret", "refresh_token"})
    if (field(json, name).empty()) return lacks(path, name);
  const std::string uri = field(json, "token_uri").empty() ? kTokenUri : field(json, "token_uri");
  const std::string form = "grant_type=refresh_token&client_id=" + percent_encode(field(json, "client_id")) +
                           "&client_secret=" + percent_encode(field(json, "client_secret")) +
                           "&refresh_token=" + percent_encode(field(json, "refresh_token"));
  const std::string who = "the user's credentials in " + path;
  const Clock clock = http->options().clock;
  return std::make_shared<Credentials>(
      who, [=] { return post_form(*http, uri, form, who); }, clock);
}

base::Result<std::shared_ptr<Credentials>> of_service_account(std::shared_ptr<Http> http,
                                                              const std::string& path,
                                                              const nlohmann::json& json) {
  for (const char* name : {"client_email", "private_key"})
    if (field(json, name).empty()) return lacks(path, name);
  const std::string email = field(json, "client_email"), key = field(json, "private_key"),
                    id = field(json, "private_key_id");
  const std::string uri = field(json, "token_uri").empty() ? kTokenUri : field(json, "token_uri");
  const std::string who = "the service account " + email + " (" + path + ")";
  // A key that cannot sign is found now, not at the first request.
  if (auto probe = signed_assertion(email, id, key, uri, base::wall_seconds()); !probe)
    return base::fail_at(probe, "the credentials ", path);
  const auto fetch = [=]() -> base::Result<Token> {
    SLUICE_TRY(const std::string assertion, signed_assertion(email, id, key, uri, base::wall_seconds()));
    return post_form(
        *http, uri, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" + assertion,
        who);
  };
  return std::make_shared<Credentials>(who, fetch, http->options().clock);
}

std::shared_ptr<Credentials> of_metadata_server(std::shared_ptr<Http> http) {
  const std::string who = "the machine's service account";
  const auto fetch = [=]() -> base::Result<Token> {
    auto answer = metadata(*http, "instance/service-accounts/default/token");
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
    return header_;
  }
  return tl::unexpected<Error>(token.error());
}

void Credentials::reject(const std::string& header) {
  const std::lock_guard lock(mutex_);
  if (header == header_) header_.clear();
}

std::shared_ptr<Credentials> anonymous_credentials() {
  return std::make_shared<Credentials>("nobody (no credentials were found)", nullptr);
}

base::Result<std::shared_ptr<Credentials>> credentials_of_json(std::shared_ptr<Http> http,
                                                               const std::string& path,
                                                               const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return base::fail(Code::kInvalidArgument, "the credentials ", path, " are no JSON object");
  const std::string type = field(json, "type");
  if (type == "authorized_user") return of_user(std::move(http), path, json);
  if (type == "service_account") return of_service_account(std::move(http), path, json);
  return base::fail(Code::kUnimplemented, "the credentials ", path, " are of type '", type,
                    "': expected authorized_user (gcloud auth application-default login) or service_account");
}

base::Result<std::shared_ptr<Credentials>> find_credentials(std::shared_ptr<Http> http) {
  if (const auto path = base::environment("GOOGLE_APPLICATION_CREDENTIALS")) {
    auto found = of_file(std::move(http), *path);
    if (!found) return base::fail_at(found, "GOOGLE_APPLICATION_CREDENTIALS");
    return found;
  }
  if (const std::string path = gcloud_file(); base::path_exists(path)) return of_file(std::move(http), path);
  if (on_google_cloud(*http)) return of_metadata_server(std::move(http));
  return anonymous_credentials();
}

}  // namespace sluice::cloud
