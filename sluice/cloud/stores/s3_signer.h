// Signs requests to S3 for one region.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "sluice/cloud/storage.h"
#include "sluice/cloud/stores/aws_credentials.h"

namespace sluice::cloud {

class S3Signer : public Signer {
 public:
  // `endpoint_from`: the setting that names the store's address, for errors.
  S3Signer(std::string region, std::shared_ptr<AwsCredentials> credentials, std::string endpoint_from)
      : region_(std::move(region)),
        credentials_(std::move(credentials)),
        endpoint_from_(std::move(endpoint_from)) {}

  // Tries a second time with new keys if they have expired, and with the server's time if this machine's
  // clock is wrong.
  base::Result<HttpResponse> once(Http& http, HttpRequest request) override;
  Error explain(const HttpResponse& response, const std::string& what) const override;
  const std::string& region() const { return region_; }

 private:
  bool mended(const HttpResponse& response, const AwsKeys& keys);

  const std::string region_;
  const std::shared_ptr<AwsCredentials> credentials_;
  const std::string endpoint_from_;
  std::atomic<std::time_t> clock_is_behind_{0};  // seconds
};

}  // namespace sluice::cloud
