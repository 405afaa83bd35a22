#include "sluice/cloud/stores/aws_credentials.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/log.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/credentials/token_request.h"
#include "sluice/cloud/stores/rest.h"

namespace sluice::cloud {
namespace {

constexpr std::time_t kRenewBefore = 300;  // seconds
constexpr char kContainerHost[] = "http://169.254.170.2";
using Found = std::shared_ptr<AwsCredentials>;

std::string profile() {
  for (const char* name : {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"})
    if (const auto value = base::environment(name)) return *value;
  return "default";
}

std::string file_of(const char* variable, const char* otherwise) {
  return base::expand_home(base::environment(variable).value_or(otherwise));
}

std::string credentials_file() { return file_of("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"); }
std::string config_file() { return file_of("AWS_CONFIG_FILE", "~/.aws/config"); }

// Returns the value of "name = value" within "[section]"; skips nested (indented) lines.
std::optional<std::string> ini_value(const std::string& text, const std::string& section,
                                     const std::string& name) {
  bool within = false;
  for (const std::string& line : base::split(text, '\n')) {
    const std::string_view trimmed = base::trim(line);
    if (trimmed.empty() || trimmed[0] == '#' || trimmed[0] == ';') continue;
    if (trimmed[0] == '[') {
      const std::size_t end = trimmed.find(']');
      within = end != std::string_view::npos && base::trim(trimmed.substr(1, end - 1)) == section;
      continue;
    }
    const std::size_t equals = trimmed.find('=');
    if (!within || equals == std::string_view::npos || line[0] == ' ' || line[0] == '\t') continue;
    if (base::trim(trimmed.substr(0, equals)) == name)
      return std::string(base::trim(trimmed.substr(equals + 1)));
  }
  return std::nullopt;
}

std::optional<std::string> setting_of(const std::string& section_owner, const std::string& name) {
  const std::string in_config = section_owner == "default" ? "default" : "profile " + section_owner;
  if (const auto text = base::read_file(config_file()))
    if (auto value = ini_value(*text, in_config, name)) return value;
  if (const auto text = base::read_file(credentials_file())) return ini_value(*text, section_owner, name);
  return std::nullopt;
}

// Reads "2026-01-31T12:00:00Z"; 0 for any other text.
std::time_t time_of(const std::string& text) {
  std::tm time{};
  return strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time) == nullptr ? 0 : timegm(&time);
}

// Reads {"AccessKeyId": …, "SecretAccessKey": …, "Token": …, "Expiration": "2026-01-01T00:00:00Z"}.
base::Result<AwsKeys> keys_of_json(const std::string& body, const std::string& who) {
  const auto json = base::parse_json(body);
  if (!json.is_object() || text_field(json, "AccessKeyId").empty() ||
      text_field(json, "SecretAccessKey").empty())
    return base::fail(Code::kUnknown, "no keys from ", who,
                      ": the answer has no AccessKeyId and SecretAccessKey");
  AwsKeys keys{text_field(json, "AccessKeyId"), text_field(json, "SecretAccessKey"),
               text_field(json, "Token")};
  keys.expires = time_of(text_field(json, "Expiration"));
  return keys;
}

base::Result<HttpResponse> ask(Http& http, HttpRequest request, const std::string& who) {
  request.direct = true;
  SLUICE_TRY(auto response, http.send(request, "keys from " + who));
  if (response.status != 200)
    return tl::unexpected<Error>(service_status_error(response, "keys from " + who));
  return response;
}

Found of_environment() {
  const auto id = base::environment("AWS_ACCESS_KEY_ID"), secret = base::environment("AWS_SECRET_ACCESS_KEY");
  if (!id || !secret) return nullptr;
  const AwsKeys keys{*id, *secret, base::environment("AWS_SESSION_TOKEN").value_or("")};
  return std::make_shared<AwsCredentials>("the key " + *id + " of AWS_ACCESS_KEY_ID",
                                          [keys] { return keys; });
}

// Exchanges a pod's own token for the keys of a role.
Found of_web_identity(const std::shared_ptr<Http>& http) {
  const auto file = base::environment("AWS_WEB_IDENTITY_TOKEN_FILE"),
             role = base::environment("AWS_ROLE_ARN");
  if (!file || !role) return nullptr;
  const std::string region = base::environment("AWS_REGION").value_or("us-east-1");
  const std::string url =
      base::environment("AWS_ENDPOINT_URL_STS").value_or("https://sts." + region + ".amazonaws.com");
  const std::string who = "the role " + *role + " by the token in " + *file;
  return std::make_shared<AwsCredentials>(who, [=]() -> base::Result<AwsKeys> {
    SLUICE_TRY(const std::string token, base::read_file(*file));
    HttpRequest request;
    request.method = "POST";
    request.url = url + "/";
    request.headers = {"Content-Type: application/x-www-form-urlencoded"};
    const std::string form =
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" + percent_encode(*role) +
        "&RoleSessionName=" + percent_encode(base::environment("AWS_ROLE_SESSION_NAME").value_or("sluice")) +
        "&WebIdentityToken=" + percent_encode(base::trim(token));
    request.body = form;
    request.secret = {"the token in " + *file + " (AWS_WEB_IDENTITY_TOKEN_FILE)", "AWS_ENDPOINT_URL_STS"};
    SLUICE_TRY(const auto response, http->send(request, "keys of " + who));
    if (response.status != 200)
      return tl::unexpected<Error>(service_status_error(response, "keys of " + who));
    SLUICE_TRY(const auto xml,
               parse_xml(response.body, "AssumeRoleWithWebIdentityResponse", "keys of " + who));
    const auto node = xml.first_child().child("AssumeRoleWithWebIdentityResult").child("Credentials");
    return AwsKeys{node.child_value("AccessKeyId"), node.child_value("SecretAccessKey"),
                   node.child_value("SessionToken"), time_of(node.child_value("Expiration"))};
  });
}

base::Result<Found> of_profile() {
  const std::string name = profile();
  const auto id = setting_of(name, "aws_access_key_id"), secret = setting_of(name, "aws_secret_access_key");
  const std::string where = "the profile " + name + " in " + credentials_file() + " and " + config_file();
  if (id && secret) {
    const AwsKeys keys{*id, *secret, setting_of(name, "aws_session_token").value_or("")};
    return std::make_shared<AwsCredentials>("the key " + *id + " of " + where, [keys] { return keys; });
  }
  for (const char* unknown : {"credential_process", "sso_session", "sso_start_url", "role_arn"})
    if (setting_of(name, unknown))
      return base::fail(Code::kUnimplemented, where, " has ", unknown,
                        ", which is not followed: run 'aws configure export-credentials --profile ", name,
                        " --format env' and set the variables that it prints");
  if (base::environment("AWS_PROFILE"))
    return base::fail(Code::kNotFound, where,
                      " has no aws_access_key_id and aws_secret_access_key: check AWS_PROFILE");
  return Found();
}

Found of_container(const std::shared_ptr<Http>& http) {
  auto url = base::environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const auto path = base::environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"))
    url = kContainerHost + *path;
  if (!url) return nullptr;
  const std::string who = "the container's role (" + base::shown_urls(*url) + ")";
  return std::make_shared<AwsCredentials>(who, [=]() -> base::Result<AwsKeys> {
    HttpRequest request;
    request.url = *url;
    request.secret = {"the container's token, and the keys that it gets,",
                      "AWS_CONTAINER_CREDENTIALS_FULL_URI", "", /*to_agent=*/true};
    auto token = base::environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (const auto file = base::environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
      SLUICE_TRY(token, base::read_file(*file));
    }
    if (token) request.headers = {"Authorization: " + std::string(base::trim(*token))};
    SLUICE_TRY(const auto response, ask(*http, request, who));
    return keys_of_json(response.body, who);
  });
}

std::string instance_endpoint() {
  std::string url = base::environment("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("http://169.254.169.254");
  while (base::ends_with(url, "/")) url.pop_back();
  return url;
}

// Returns the session's header for the instance's metadata; nothing if there is no such service.
std::optional<std::string> instance_session(Http& http) {
  HttpRequest request;
  request.method = "PUT";
  request.url = instance_endpoint() + "/latest/api/token";
  request.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"};
  request.direct = true;
  request.total_timeout = 2;
  const auto response = http.once(request);
  if (!response || response->status != 200 || response->body.empty()) return std::nullopt;
  if (response->body.find_first_of("\r\n") != std::string::npos) return std::nullopt;
  return "X-aws-ec2-metadata-token: " + response->body;
}

Found of_instance(const std::shared_ptr<Http>& http) {
  if (base::environment_flag("AWS_EC2_METADATA_DISABLED", false)) return nullptr;
  const auto session = instance_session(*http);
  if (!session) return nullptr;
  const std::string address = instance_endpoint() + "/latest/meta-data/iam/security-credentials/";
  HttpRequest request;
  request.url = address;
  request.headers = {*session};
  request.direct = true;
  const auto roles = http->send(request, "the instance's role");
  if (!roles || roles->status != 200) return nullptr;  // 404: the instance has no role
  const std::string role(base::trim(roles->body.substr(0, roles->body.find('\n'))));
  const std::string who = "the instance's role " + role;
  return std::make_shared<AwsCredentials>(who, [=]() -> base::Result<AwsKeys> {
    const auto again = instance_session(*http);
    HttpRequest keys;
    keys.url = address + percent_encode(role);
    keys.headers = {again.value_or(*session)};
    SLUICE_TRY(const auto response, ask(*http, keys, who));
    return keys_of_json(response.body, who);
  });
}

}  // namespace

std::optional<std::string> aws_setting(const std::string& name) { return setting_of(profile(), name); }

base::Result<AwsKeys> AwsCredentials::keys() {
  const std::lock_guard lock(mutex_);
  const std::time_t now = std::time(nullptr);
  if (keys_ && (keys_->expires == 0 || now < keys_->expires - kRenewBefore)) return *keys_;
  auto fetched = fetch_();
  if (fetched) {
    keys_ = *fetched;
  } else if (keys_ && now < keys_->expires) {
    base::warn("new keys for S3 could not be had, the old ones are used: ", fetched.error().what());
    return *keys_;
  }
  return fetched;
}

void AwsCredentials::reject(const AwsKeys& keys) {
  const std::lock_guard lock(mutex_);
  if (keys_ && keys_->id == keys.id && keys_->session == keys.session) keys_.reset();
}

base::Result<std::shared_ptr<AwsCredentials>> find_aws_credentials(std::shared_ptr<Http> http) {
  if (auto found = of_environment()) return found;
  if (auto found = of_web_identity(http)) return found;
  SLUICE_TRY(auto of_files, of_profile());
  if (of_files) return of_files;
  if (auto found = of_container(http)) return found;
  if (auto found = of_instance(http)) return found;
  return std::make_shared<AwsCredentials>(
      base::str("nobody: there are no credentials in AWS_ACCESS_KEY_ID, AWS_WEB_IDENTITY_TOKEN_FILE, ",
                credentials_file(), ", ", config_file(), " (profile ", profile(),
                "), the container's endpoint, or the instance's metadata"),
      nullptr);
}

}  // namespace sluice::cloud
