// Requests that are answered with a token, for all kinds of credentials.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cloud/credentials/credentials.h"
#include "sluice/cloud/credentials/secret.h"
#include "sluice/cloud/http.h"

namespace sluice::cloud {

constexpr char kCloudScope[] = "https://www.googleapis.com/auth/cloud-platform";

// Returns a text of a JSON object; "" if it is missing or not a text.
std::string text_field(const nlohmann::json& json, const char* name);
// Reads the token in an answer {"access_token", "expires_in"}. No message contains the token.
base::Result<Token> parse_token(const std::string& body, const std::string& who);
// POSTs a form, which is a secret, and reads the token in the answer. `advice`: what to do if the server
// refuses. Tries once: the sender of the request that needs the token tries again, and has the one deadline.
base::Result<Token> post_for_token(Http& http, const std::string& url, const std::string& form,
                                   const std::vector<std::string>& headers, const std::string& who,
                                   const std::string& advice, Secret secret = {});
// Returns the server's refusal of a token as kPermissionDenied: its words and the advice.
tl::unexpected<Error> token_refused(const HttpResponse& response, const std::string& who,
                                    const std::string& advice);
// Returns the error for a credentials' file that lacks a text.
tl::unexpected<Error> lacks_text(const std::string& path, const char* name);

// Returns credentials of a file of type external_account: a token of another identity provider (in a file, or
// at a URL) is exchanged for one of Google's. `path` names the file in errors.
base::Result<std::shared_ptr<Credentials>> external_account(std::shared_ptr<Http> http,
                                                            const std::string& path,
                                                            const nlohmann::json& json);
// Returns credentials of a file of type impersonated_service_account: its `source_credentials` request a
// service account's token.
base::Result<std::shared_ptr<Credentials>> impersonated_account(std::shared_ptr<Http> http,
                                                                const std::string& path,
                                                                const nlohmann::json& json);
// Returns tokens of the service account in a "…/serviceAccounts/EMAIL:generateAccessToken" URL, which
// `source` may request. `json`: the file, for delegates, lifetime and facts.
base::Result<std::shared_ptr<Credentials>> impersonate(std::shared_ptr<Http> http, const std::string& path,
                                                       const std::string& url,
                                                       std::shared_ptr<Credentials> source,
                                                       const nlohmann::json& json);
// Reads quota_project_id and universe_domain of a credentials' file.
CredentialFacts facts_of_file(const nlohmann::json& json);

}  // namespace sluice::cloud
