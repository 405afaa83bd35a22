#include "sluice/cloud/credentials/token_request.h"

#include <nlohmann/json.hpp>

#include "sluice/base/formats/parse_json.h"

namespace sluice::cloud {

std::string text_field(const nlohmann::json& json, const char* name) {
  return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : std::string();
}

base::Result<Token> parse_token(const std::string& body, const std::string& who) {
  const auto json = base::parse_json(body);
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
                                   const std::string& advice, Secret secret) {
  HttpRequest request;
  request.method = "POST";
  request.url = url;
  request.headers = headers;
  request.headers.push_back("Content-Type: application/x-www-form-urlencoded");
  request.body = form;
  request.secret = std::move(secret);
  if (request.secret.what.empty()) request.secret.what = "what a token for " + who + " is asked with";
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
