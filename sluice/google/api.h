// One caller of Google's REST services: authenticates, tries again, says what errors mean, and in a dry run
// prints what it would change instead of changing it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/cloud/credentials.h"
#include "sluice/cloud/http.h"
#include "sluice/google/failure.h"

namespace sluice::google {

enum class Service { kTpu, kCompute, kFilestore, kStorage, kServiceUsage, kResourceManager };

// "tpu.googleapis.com".
std::string host_of(Service service);

struct Call {
  Service service = Service::kTpu;
  std::string method = "GET";
  std::string path;  // from the root, percent-encoded where needed: "/v2/projects/p/locations/z/nodes"
  std::vector<std::pair<std::string, std::string>> query = {};
  Json body = nullptr;  // null: none
  std::string what;     // begins the messages: "creating the node x in z"
  // A GET that asks for nothing new (a POST that only reads, as :getGuestAttributes and testIamPermissions,
  // is sent in a dry run too).
  bool reads = false;
};

struct ApiOptions {
  // http://127.0.0.1:PORT: all services are there, on the same paths. Empty: https://SERVICE.googleapis.com.
  std::string endpoint;
  bool dry_run = false;  // what would change something is printed, not sent; what only reads is sent
  // Where a dry run writes to; standard output by default.
  std::function<void(const std::string& text)> print;
  cloud::HttpOptions http;
  std::shared_ptr<cloud::Credentials> credentials;  // null: looked for at the first request
  std::string quota_project;  // x-goog-user-project; empty: that of the credentials' file, if it has one
  const std::atomic<bool>* cancelled = nullptr;
};

// SLUICE_GOOGLE_ENDPOINT (only plain http on loopback, then without a token unless SLUICE_GOOGLE_TOKEN is
// set), SLUICE_GOOGLE_TOKEN (an access token, instead of the credentials), SLUICE_CLOUD_RETRY.
base::Result<ApiOptions> api_options_of_environment();

// The project of SLUICE_GOOGLE_PROJECT, GOOGLE_CLOUD_PROJECT or CLOUDSDK_CORE_PROJECT, gcloud's active
// configuration, the credentials' file, or the machine's metadata (asked only on a machine of Google's).
base::Result<std::string> default_project();

// What a list found, and the zones (or regions) that did not answer: without these a list would lie.
template <typename T>
struct Listed {
  std::vector<T> items;
  std::vector<std::string> unreachable;
};

// Threads: all members from any thread.
class Api {
 public:
  explicit Api(ApiOptions options);

  // The answer's JSON; {} where it has no body. Tries again on 408, 429, 5xx and lost connections as the
  // retry policy says, with Retry-After; a 429 that says that a quota is used up is final. A mutation whose
  // answer was lost is sent again: the Failure of the second try (kExists, kNotFound) has after_lost set.
  // In a dry run what changes something is printed (method, URL, body) and answered with {}.
  Outcome<Json> call(const Call& call);

  // A list over all its pages: `field` of each is put together. Scopes that could not be reached are in
  // `unreachable`.
  Outcome<Json> pages(const Call& call, const std::string& field, std::vector<std::string>* unreachable);
  // The same, each item read by `item_of`.
  template <typename T>
  Outcome<Listed<T>> list(const Call& call, const std::string& field, T (*item_of)(const Json&)) {
    Listed<T> listed;
    GOOGLE_TRY(const Json all, pages(call, field, &listed.unreachable));
    for (const Json& json : all) listed.items.push_back(item_of(json));
    return listed;
  }

  // "https://tpu.googleapis.com/v2/…?a=b", or the same on the endpoint.
  std::string url(const Call& call) const;

  // Whether there is anybody to make requests as: false where credentials were looked for and there are none.
  // An error for some that cannot be used. Sends no request to a service.
  base::Result<bool> has_credentials();

  const ApiOptions& options() const { return options_; }
  bool dry_run() const { return options_.dry_run; }
  const cloud::Clock& clock() const { return options_.http.clock; }
  // How many requests were sent, and mutations printed instead.
  int sent() const { return sent_; }

 private:
  base::Result<std::vector<std::string>> headers(const Call& call, std::string& authorization);
  base::Result<std::shared_ptr<cloud::Credentials>> credentials();
  void print_mutation(const Call& call) const;

  const ApiOptions options_;
  const std::shared_ptr<cloud::Http> http_;
  std::mutex mutex_;
  std::shared_ptr<cloud::Credentials> credentials_;
  std::string quota_project_;
  std::atomic<int> sent_{0};
};

}  // namespace sluice::google
