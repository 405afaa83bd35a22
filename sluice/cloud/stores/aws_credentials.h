// The identity of the program for S3.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "sluice/cloud/http.h"
#include "sluice/cloud/stores/aws_signature.h"

namespace sluice::cloud {

// Returns a setting of the profile (AWS_PROFILE, or "default") from ~/.aws/config or ~/.aws/credentials;
// AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE name other files.
std::optional<std::string> aws_setting(const std::string& name);

// Threads: all members from any thread; one fetches, the others wait for it.
class AwsCredentials {
 public:
  using Fetch = std::function<base::Result<AwsKeys>()>;
  // `who` describes the credentials in errors. Without `fetch` they are anonymous.
  AwsCredentials(std::string who, Fetch fetch) : who_(std::move(who)), fetch_(std::move(fetch)) {}

  bool anonymous() const { return !fetch_; }
  // Describes where the keys come from; for anonymous ones, where credentials were searched for.
  const std::string& who() const { return who_; }
  // Fetches the keys again 5 minutes before they expire; if that fails while they are valid, they are used.
  base::Result<AwsKeys> keys();
  // Reports that the service calls them expired: the next keys() fetches again.
  void reject(const AwsKeys& keys);

 private:
  const std::string who_;
  const Fetch fetch_;
  std::mutex mutex_;
  std::optional<AwsKeys> keys_;
};

// Searches in the order of AWS' own tools: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN;
// AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN; the profile of ~/.aws; the container's endpoint
// (AWS_CONTAINER_CREDENTIALS_FULL_URI or …_RELATIVE_URI); the instance's metadata (version 2); else
// anonymous, which is enough for public buckets.
base::Result<std::shared_ptr<AwsCredentials>> find_aws_credentials(std::shared_ptr<Http> http);

}  // namespace sluice::cloud
