// What all kinds of credentials share: requests that are answered with a token.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cloud/credentials.h"
#include "sluice/cloud/http.h"
#include "sluice/cloud/secret.h"

namespace sluice::cloud {

constexpr char kCloudScope[] = "https://www.googleapis.com/auth/cloud-platform";

// A text of a JSON object; "" when it is missing or no text.
std::string text_field(const nlohmann::json& json, const char* name);
// Of an answer {"access_token", "expires_in"}. No message contains the token.
base::Result<Token> parse_token(const std::string& body, const std::string& who);
// POSTs a form, which is a secret, and reads the token that comes back. `advice`: what to do when the server
// refuses. One try: who sends the request that needs the token tries again, and has the one deadline.
base::Result<Token> post_for_token(Http& http, const std::string& url, const std::string& form,
                                   const std::vector<std::string>& headers, const std::string& who,
                                   const std::string& advice, Secret secret = {});
// The server's refusal of a token: its words and the advice, as kPermissionDenied.
tl::unexpected<Error> token_refused(const HttpResponse& response, const std::string& who,
                                    const std::string& advice);
// The credentials' file lacks a text.
tl::unexpected<Error> lacks_text(const std::string& path, const char* name);

// Of files of type external_account: a token of another identity provider (in a file, or at a URL) is
// exchanged for one of Google's. `path` names the file in errors.
base::Result<std::shared_ptr<Credentials>> external_account(std::shared_ptr<Http> http,
                                                            const std::string& path,
                                                            const nlohmann::json& json);
// Of files of type impersonated_service_account: `source_credentials` ask for a service account's token.
base::Result<std::shared_ptr<Credentials>> impersonated_account(std::shared_ptr<Http> http,
                                                                const std::string& path,
                                                                const nlohmann::json& json);
// Tokens of the service account of a "…/serviceAccounts/EMAIL:generateAccessToken" URL, which `source` may
// ask for. `json`: the file, for delegates, lifetime and facts.
base::Result<std::shared_ptr<Credentials>> impersonate(std::shared_ptr<Http> http, const std::string& path,
                                                       const std::string& url,
                                                       std::shared_ptr<Credentials> source,
                                                       const nlohmann::json& json);
// quota_project_id and universe_domain of a credentials' file.
CredentialFacts facts_of_file(const nlohmann::json& json);

}  // namespace sluice::cloud
