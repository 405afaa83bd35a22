// The program's identity for Google's services: tokens, fetched when needed and again before they expire.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "sluice/base/result.h"
#include "sluice/cloud/credentials/secret.h"
#include "sluice/cloud/http.h"

namespace sluice::cloud {

struct Token {
  std::string value;   // never in a message or a log
  double seconds = 0;  // how long it is valid from now on
};

// The facts in a credentials' file besides the identity.
struct CredentialFacts {
  std::string quota_project;  // quota_project_id: the project that pays for a user's calls; may be ""
  std::string universe = "googleapis.com";  // universe_domain: the domain whose hosts may get the tokens
};

// Threads: all members from any thread; one fetches, the others wait for it.
class Credentials {
 public:
  using Fetch = std::function<base::Result<Token>()>;

  // `who` describes the credentials in errors: "the service account x@y". Without `fetch` they are anonymous.
  Credentials(std::string who, Fetch fetch, Clock clock = Clock::real(), CredentialFacts facts = {})
      : who_(std::move(who)), facts_(std::move(facts)), fetch_(std::move(fetch)), clock_(std::move(clock)) {}

  // Returns the "Authorization: …" line for a request; empty if anonymous. A token is replaced 225 s before
  // it expires (at half of its time, if that is later). If that fails while the token is valid, it is used,
  // and renewed after 10 s. kUnavailable for a failure that may pass: it was tried once, and is tried again
  // with the request.
  base::Result<std::string> header();
  // Reports that the server refused this line (status 401): the next header() fetches again.
  void reject(const std::string& header);

  bool anonymous() const { return !fetch_; }
  // Describes the credentials in errors; for anonymous ones, the places where credentials were searched for.
  const std::string& who() const { return who_; }
  // The value of the header x-goog-user-project, which services require with users' own credentials; "":
  // none. Cloud Storage never gets it: there the project would take over a bucket's costs. See Access::payer.
  const std::string& quota_project() const { return facts_.quota_project; }
  // Returns the token as a secret for the rule of secret.h.
  Secret secret() const { return {"a token of " + who_, "", facts_.universe}; }
  // An error unless a token may be sent to the URL: by https to the universe's hosts, or to this machine.
  // Anonymous requests may go anywhere.
  base::Status may_go_to(const std::string& url) const;

 private:
  const std::string who_;
  const CredentialFacts facts_;
  const Fetch fetch_;
  const Clock clock_;
  std::mutex mutex_;
  std::string header_;
  double renew_ = 0, expires_ = 0;
};

std::shared_ptr<Credentials> anonymous_credentials();
// Returns SLUICE_GOOGLE_ENDPOINT without slashes at its end; "" if it is not set. It replaces all of Google's
// services, without credentials. Only a server on this machine is allowed: tokens go only to Google.
base::Result<std::string> google_endpoint_of_environment();

// Searches in Google's order: the file of GOOGLE_APPLICATION_CREDENTIALS; gcloud's
// application_default_credentials.json (in $CLOUDSDK_CONFIG or ~/.config/gcloud); the metadata server of a
// machine in Google's cloud (GCE_METADATA_HOST names another one, NO_GCE_CHECK=true skips it); else
// anonymous, which is enough for public buckets. A file that exists but cannot be used is an error, and so is
// one with a token server that does not belong to Google.
base::Result<std::shared_ptr<Credentials>> find_credentials(std::shared_ptr<Http> http);

// Returns the credentials in a file's content: authorized_user, service_account, impersonated_service_account
// or external_account (whose own token is in a file or at a URL). `path` names the file in errors.
base::Result<std::shared_ptr<Credentials>> credentials_of_json(std::shared_ptr<Http> http,
                                                               const std::string& path,
                                                               const std::string& text);

// Returns a service account's signed request for a token (RFC 7523). `now`: seconds since 1970.
base::Result<std::string> signed_assertion(const std::string& email, const std::string& key_id,
                                           const std::string& private_key_pem, const std::string& audience,
                                           double now);

}  // namespace sluice::cloud
