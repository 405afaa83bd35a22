// Workload and workforce identity: another provider's token is exchanged for one of Google's (RFC 8693).
#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/base64.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/credentials/token_request.h"

namespace sluice::cloud {
namespace {

constexpr char kMetadataHost[] = "169.254.169.254";  // in clouds; only their own machines reach it

// Where the other provider's token is, and in which form.
struct SubjectSource {
  std::string file, url;
  std::vector<std::string> headers = {};
  std::string json_field = {};  // "": the whole text
};

tl::unexpected<Error> wrong(const std::string& path, const std::string& what) {
  return base::fail(Code::kInvalidArgument, "the credentials ", path, ": ", what,
                    ": make them again with gcloud iam workload-identity-pools create-cred-config");
}

base::Status read_format(const std::string& path, const nlohmann::json& json, SubjectSource& source) {
  const auto format = json.find("format");
  if (format == json.end()) return {};
  const std::string type = text_field(*format, "type");
  if (type == "text" || type.empty()) return {};
  if (type != "json") return wrong(path, "the format '" + type + "' is unknown, expected text or json");
  source.json_field = text_field(*format, "subject_token_field_name");
  if (source.json_field.empty()) return wrong(path, "the format json needs subject_token_field_name");
  return {};
}

base::Status read_headers(const std::string& path, const nlohmann::json& json, SubjectSource& source) {
  const auto headers = json.find("headers");
  if (headers == json.end() || !headers->is_object()) return {};
  for (const auto& [name, value] : headers->items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if ((name + text).find_first_of("\r\n") != std::string::npos)
      return wrong(path, "a header of credential_source holds a line break");
    source.headers.push_back(name + ": " + text);
  }
  return {};
}

// The response from there is the other provider's token: http is allowed only from this machine or its cloud.
base::Status check_source_url(const std::string& path, const std::string& url) {
  SLUICE_TRY(const std::string host, host_of_url(url));
  if (base::starts_with(url, "https://") || is_loopback(host) || host == kMetadataHost) return {};
  return wrong(path, "credential_source.url is '" + url + "', expected https");
}

base::Result<SubjectSource> source_of(const std::string& path, const nlohmann::json& json) {
  const auto found = json.find("credential_source");
  if (found == json.end() || !found->is_object()) return wrong(path, "credential_source is missing");
  SubjectSource source{text_field(*found, "file"), text_field(*found, "url")};
  for (const char* other : {"executable", "environment_id", "certificate"})
    if (found->contains(other))
      return base::fail(Code::kUnimplemented, "the credentials ", path, " take their token from '", other,
                        "': expected a file or a url. Have the token written to a file, and make them with "
                        "--credential-source-file");
  if (source.file.empty() == source.url.empty())
    return wrong(path, "credential_source needs one of file and url");
  SLUICE_OK(read_format(path, *found, source));
  SLUICE_OK(read_headers(path, *found, source));
  if (!source.url.empty()) SLUICE_OK(check_source_url(path, source.url));
  return source;
}

base::Result<std::string> text_at(Http& http, const SubjectSource& source, const std::string& who) {
  if (!source.file.empty()) {
    auto text = base::read_file(source.file);  // read each time: it is replaced before it expires
    if (!text) return base::fail_at(text, who, ", whose token is in a file");
    return text;
  }
  HttpRequest request;
  request.url = source.url;
  request.headers = source.headers;
  request.direct = !base::starts_with(source.url, "https://");
  if (!source.headers.empty())
    request.secret = {"the headers of credential_source", "credential_source.url", "", /*to_agent=*/true};
  SLUICE_TRY(HttpResponse response, http.try_once(request, "the token of " + who));
  if (response.status != 200)
    return token_refused(response, who, "It was asked at credential_source.url: is that service running?");
  return std::move(response.body);
}

base::Result<std::string> subject_token(Http& http, const SubjectSource& source, const std::string& who) {
  SLUICE_TRY(const std::string text, text_at(http, source, who));
  const std::string& place = source.file.empty() ? source.url : source.file;
  if (source.json_field.empty()) {
    const std::string token(base::trim(text));
    if (token.empty())
      return base::fail(Code::kPermissionDenied, who, ": ", place, " is empty, expected a token");
    return token;
  }
  const auto json = base::parse_json(text);
  const std::string token = json.is_object() ? text_field(json, source.json_field.c_str()) : "";
  if (token.empty())
    return base::fail(Code::kPermissionDenied, who, ": ", place, " has no text '", source.json_field,
                      "', where the token is expected");
  return token;
}

// Returns the part of the exchange's form that does not change.
std::string form_of(const nlohmann::json& json) {
  const std::string project = text_field(json, "workforce_pool_user_project");
  std::string form =
      "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange"
      "&requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&audience=" +
      percent_encode(text_field(json, "audience")) + "&scope=" + percent_encode(kCloudScope) +
      "&subject_token_type=" + percent_encode(text_field(json, "subject_token_type"));
  if (!project.empty() && text_field(json, "client_id").empty())
    form += "&options=" + percent_encode(nlohmann::json{{"userProject", project}}.dump());
  return form;
}

}  // namespace

base::Result<std::shared_ptr<Credentials>> external_account(std::shared_ptr<Http> http,
                                                            const std::string& path,
                                                            const nlohmann::json& json) {
  for (const char* name : {"audience", "subject_token_type", "token_url"})
    if (text_field(json, name).empty()) return lacks_text(path, name);
  SLUICE_TRY(const SubjectSource source, source_of(path, json));
  const CredentialFacts facts = facts_of_file(json);
  const std::string url = text_field(json, "token_url"), form = form_of(json);
  const std::string who = "the external account in " + path;
  SLUICE_OK(may_send_secret(url, {"the credentials " + path + ": token_url", "", facts.universe}));
  std::vector<std::string> headers;
  if (const std::string id = text_field(json, "client_id"); !id.empty())
    headers.push_back("Authorization: Basic " + base::base64(id + ":" + text_field(json, "client_secret")));
  const auto fetch = [=]() -> base::Result<Token> {
    SLUICE_TRY(const std::string subject, subject_token(*http, source, who));
    return post_for_token(*http, url, form + "&subject_token=" + percent_encode(subject), headers, who,
                          "The token was in " + (source.file.empty() ? source.url : source.file) +
                              ": it may have expired, or the pool of '" + text_field(json, "audience") +
                              "' does not take it");
  };
  auto own = std::make_shared<Credentials>(who, fetch, http->options().clock, facts);
  const std::string account = text_field(json, "service_account_impersonation_url");
  if (account.empty()) return own;
  return impersonate(std::move(http), path, account, std::move(own), json);
}

}  // namespace sluice::cloud
