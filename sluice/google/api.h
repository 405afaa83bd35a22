// A client of Google's REST services: authenticates, tries again, classifies errors, and in a dry run prints
// changes instead of making them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/cloud/credentials/credentials.h"
#include "sluice/cloud/http.h"
#include "sluice/google/failure.h"

namespace sluice::google {

enum class Service { kTpu, kCompute, kFilestore, kStorage, kServiceUsage, kResourceManager };

// Returns "tpu.googleapis.com".
std::string host_of(Service service);

struct Call {
  Service service = Service::kTpu;
  std::string method = "GET";
  std::string path;  // from the root, percent-encoded where needed: "/v2/projects/p/locations/z/nodes"
  std::vector<std::pair<std::string, std::string>> query = {};
  Json body = nullptr;  // null: no body
  std::string what;     // begins the messages: "creating the node x in z"
  // A request that changes nothing: a dry run sends it. For a POST that only reads, as :getGuestAttributes
  // and testIamPermissions; a GET always counts as one.
  bool reads = false;
};

struct ApiOptions {
  // http://127.0.0.1:PORT: this server has all services, on the same paths. Empty:
  // https://SERVICE.googleapis.com.
  std::string endpoint;
  bool dry_run = false;  // changes are printed, not sent; reads are sent
  // The output of a dry run; standard output by default.
  std::function<void(const std::string& text)> print;
  cloud::HttpOptions http;
  std::shared_ptr<cloud::Credentials> credentials;  // null: searched for at the first request
  std::string quota_project;  // x-goog-user-project; empty: from the credentials' file, if it has one
  const std::atomic<bool>* cancelled = nullptr;
};

// Reads SLUICE_GOOGLE_ENDPOINT (only plain http on loopback, then without a token unless SLUICE_GOOGLE_TOKEN
// is set), SLUICE_GOOGLE_TOKEN (an access token, instead of the credentials), SLUICE_CLOUD_RETRY.
base::Result<ApiOptions> api_options_of_environment();

// Returns the project of SLUICE_GOOGLE_PROJECT, GOOGLE_CLOUD_PROJECT or CLOUDSDK_CORE_PROJECT, gcloud's
// active configuration, the credentials' file, or the machine's metadata (asked only on a machine of
// Google's).
base::Result<std::string> default_project();

// The items of a list, and the zones (or regions) that did not answer and may have more.
template <typename T>
struct Listed {
  std::vector<T> items;
  std::vector<std::string> unreachable;
};

// Threads: all members from any thread.
class Api {
 public:
  explicit Api(ApiOptions options);

  // Returns the answer's JSON; {} if it has no body. Tries again on 408, 429, 5xx and lost connections by the
  // retry policy, with Retry-After; a 429 for a used-up quota is final. A mutation whose answer was lost is
  // sent again: the Failure of the second try (kExists, kNotFound) has after_lost set. In a dry run a
  // mutation is printed (method, URL, body) and answered with {}.
  Outcome<Json> call(const Call& call);

  // Calls visit(page) for each page of a list.
  Done each_page(const Call& call, const std::function<void(const Json&)>& visit);
  // Returns a list over all its pages: joins `field` of each. Unreachable scopes are added to `unreachable`.
  Outcome<Json> pages(const Call& call, const std::string& field, std::vector<std::string>* unreachable);
  // Lists like pages() and reads each item with `item_of`.
  template <typename T>
  Outcome<Listed<T>> list(const Call& call, const std::string& field, T (*item_of)(const Json&)) {
    Listed<T> listed;
    GOOGLE_TRY(const Json all, pages(call, field, &listed.unreachable));
    for (const Json& json : all) listed.items.push_back(item_of(json));
    return listed;
  }

  // Returns "https://tpu.googleapis.com/v2/…?a=b", or the same path on the endpoint.
  std::string url(const Call& call) const;

  // Returns whether requests can be authenticated: false if no credentials were found. An error if they
  // cannot be used. Sends no request to a service.
  base::Result<bool> has_credentials();

  const ApiOptions& options() const { return options_; }
  bool dry_run() const { return options_.dry_run; }
  const cloud::Clock& clock() const { return options_.http.clock; }
  // Returns the number of requests sent, and of mutations printed instead.
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
