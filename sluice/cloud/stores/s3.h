// S3 and stores with its protocol: MinIO, R2, Ceph and others.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cloud/storage.h"
#include "sluice/cloud/stores/aws_credentials.h"

namespace sluice::cloud {

struct S3Settings {
  std::string endpoint;  // "http://127.0.0.1:9000": objects are at ENDPOINT/BUCKET/NAME; "": AWS' own
  std::string endpoint_from = {};    // the setting that names it, for errors
  std::string region = "us-east-1";  // of buckets until their own is known
};

// Reads AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION and AWS_DEFAULT_REGION, or endpoint_url and region
// of the profile.
base::Result<S3Settings> s3_settings_of_environment();

// Threads: all members from any thread.
class S3 : public Store {
 public:
  S3(S3Settings settings, std::shared_ptr<Http> http, std::shared_ptr<AwsCredentials> credentials);

  base::Result<ObjectFacts> stat(const ObjectName& name,
                                 const std::atomic<bool>* cancelled = nullptr) const override;
  base::Result<std::vector<ObjectFacts>> list(const std::string& bucket, const std::string& prefix,
                                              bool flat = false) const override;
  // Pinned by its ETag. Its bytes are compared with the stored checksum of the whole object or, on AWS, with
  // an ETag that is an MD5.
  base::Result<Remote> find(const ObjectName& name,
                            const std::atomic<bool>* cancelled = nullptr) const override;
  base::Result<std::string> read_text(const ObjectName& name) const override;
  // Uploads in parts if the object is larger than a chunk. The server compares the SHA-256 of each request's
  // body, and a CRC-32C of the object, which it stores.
  base::Result<std::unique_ptr<Upload>> start_upload(const ObjectName& name,
                                                     const UploadOptions& options = {}) const override;
  base::Result<ObjectFacts> copy(const ObjectName& from, const ObjectName& to,
                                 const UploadOptions& options = {}) const override;
  // The store copies the object as the first part of its successor; only the last part may be below 5 MiB.
  std::optional<std::uint64_t> least_appended() const override { return (5 << 20) + 1; }
  base::Result<ObjectFacts> append(const std::string& path, std::uint64_t size, const ObjectName& name,
                                   const ObjectFacts& old) const override;
  base::Status remove(const ObjectName& name, const std::string& generation = "") const override;

  // Sends a request for the object; `query` without "?". Learns the bucket's region if it is another one.
  base::Result<HttpResponse> send(const ObjectName& name, const std::string& query, HttpRequest request,
                                  const std::string& what) const;
  // Sends a request like send(); a status other than 2xx is an error.
  base::Result<HttpResponse> expect_ok(const ObjectName& name, const std::string& query, HttpRequest request,
                                       const std::string& what) const;
  const Http& http() const { return *http_; }
  bool on_aws() const { return settings_.endpoint.empty(); }

 private:
  base::Result<HttpResponse> head(const ObjectName& name, const std::atomic<bool>* cancelled) const;
  base::Status copy_in_parts(const ObjectName& from, const ObjectName& to, const ObjectFacts& facts,
                             const UploadOptions& options) const;
  std::string address(const ObjectName& name) const;
  std::string region_of(const std::string& bucket) const;
  Access access_to(const std::string& bucket) const;
  bool learn_region(const std::string& bucket, const HttpResponse& response) const;

  const S3Settings settings_;
  const std::shared_ptr<Http> http_;
  const std::shared_ptr<AwsCredentials> credentials_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string> regions_;              // of buckets, if not settings_.region
  mutable std::map<std::string, std::shared_ptr<Signer>> signers_;  // one for each region
};

base::Result<Store*> shared_s3();

}  // namespace sluice::cloud
