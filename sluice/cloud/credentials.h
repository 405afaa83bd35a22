// Who the program is to Google's services: tokens, fetched when needed and again before they expire.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "sluice/base/result.h"
#include "sluice/cloud/http.h"
#include "sluice/cloud/secret.h"

namespace sluice::cloud {

struct Token {
  std::string value;   // never in a message or a log
  double seconds = 0;  // how long it is good from now on
};

// What a credentials' file says besides whose they are.
struct CredentialFacts {
  std::string quota_project;                // quota_project_id: who pays for a user's calls; may be ""
  std::string universe = "googleapis.com";  // universe_domain: whose hosts may see the tokens
};

// Threads: all members from any thread; one fetches, the others wait for it.
class Credentials {
 public:
  using Fetch = std::function<base::Result<Token>()>;

  // `who` describes them in errors: "the service account x@y". Without `fetch`, anonymous.
  Credentials(std::string who, Fetch fetch, Clock clock = Clock::real(), CredentialFacts facts = {})
      : who_(std::move(who)), facts_(std::move(facts)), fetch_(std::move(fetch)), clock_(std::move(clock)) {}

  // The "Authorization: …" line for a request; empty when anonymous. A token is replaced 225 s before it
  // expires (at half of its time, if that is later); should that fail while it is good, it is used, and asked
  // for again after 10 s. kUnavailable for what may pass: it was tried once, and is tried again with the
  // request.
  base::Result<std::string> header();
  // The server refused this line (status 401): the next header() fetches again.
  void reject(const std::string& header);

  bool anonymous() const { return !fetch_; }
  // For errors. Of anonymous ones: where credentials were looked for.
  const std::string& who() const { return who_; }
  // For the header x-goog-user-project, which services ask of users' own credentials; "": none. Cloud Storage
  // is never sent this one: there it would take over a bucket's costs. See Access::payer.
  const std::string& quota_project() const { return facts_.quota_project; }
  // What a token is to the rule of secret.h.
  Secret secret() const { return {"a token of " + who_, "", facts_.universe}; }
  // An error unless a token may be sent there: by https to the universe's hosts, or to this machine.
  // Anonymous ones may go anywhere.
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
// SLUICE_GOOGLE_ENDPOINT without slashes at its end, which stands in for all of Google's services, without
// credentials; "" where it is not set. Anything but a server on this machine is an error: tokens go to Google
// alone.
base::Result<std::string> google_endpoint_of_environment();

// Google's order: the file of GOOGLE_APPLICATION_CREDENTIALS; application_default_credentials.json of gcloud
// (in $CLOUDSDK_CONFIG or ~/.config/gcloud); the metadata server of a machine in Google's cloud
// (GCE_METADATA_HOST names another one, NO_GCE_CHECK=true passes over it); anonymous, which is enough for
// public buckets. A file that is there but cannot be used is an error, and so is one that names a token
// server that is none of Google's.
base::Result<std::shared_ptr<Credentials>> find_credentials(std::shared_ptr<Http> http);

// Of a file's content: authorized_user, service_account, impersonated_service_account and external_account
// (whose own token is in a file or at a URL). `path` names it in errors.
base::Result<std::shared_ptr<Credentials>> credentials_of_json(std::shared_ptr<Http> http,
                                                               const std::string& path,
                                                               const std::string& text);

// The signed request (RFC 7523) with which a service account asks for a token. `now`: seconds since 1970.
base::Result<std::string> signed_assertion(const std::string& email, const std::string& key_id,
                                           const std::string& private_key_pem, const std::string& audience,
                                           double now);

}  // namespace sluice::cloud
