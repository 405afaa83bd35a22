// Cloud Storage: objects in buckets, by its JSON interface.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cloud/credentials/credentials.h"
#include "sluice/cloud/http.h"
#include "sluice/cloud/store.h"

namespace sluice::cloud {

// Signs each request by itself, as S3 and Azure require.
class Signer {
 public:
  virtual ~Signer() = default;
  // Http::once, signed; a second time if the answer says that the credentials have expired.
  virtual base::Result<HttpResponse> once(Http& http, HttpRequest request) = 0;
  // Returns the error for an answer, with what to do about it.
  virtual Error explain(const HttpResponse& response, const std::string& what) const = 0;
};

// How requests to one service are sent: credentials and connections.
struct Access {
  std::shared_ptr<Http> http;
  std::shared_ptr<Credentials> credentials;  // null: no credentials
  bool direct = false;                       // never through a proxy
  // The project that pays for requests to requester-pays buckets (x-goog-user-project); "": none.
  std::string payer = {};
  std::shared_ptr<Signer> signer = nullptr;  // replaces the credentials

  // Http::once and Http::send with the token. On 401 the token is fetched and the request sent again, once.
  base::Result<HttpResponse> once(HttpRequest request) const;
  base::Result<HttpResponse> send(HttpRequest request, const std::string& what) const;
};

// Threads: all members from any thread.
class Storage : public Store {
 public:
  // `endpoint`: "https://storage.googleapis.com", or an emulator's, without a slash at the end.
  Storage(std::string endpoint, Access access) : endpoint_(std::move(endpoint)), access_(std::move(access)) {}

  // Returns the storage of this process: Google's, or the server of STORAGE_EMULATOR_HOST=[http://]host:port
  // or SLUICE_GOOGLE_ENDPOINT (then without credentials). GOOGLE_CLOUD_QUOTA_PROJECT is the payer.
  // Credentials are searched for at the first call.
  static base::Result<Storage*> shared();
  // Returns another one that uses the caller's connections.
  static base::Result<std::unique_ptr<Storage>> of_environment(std::shared_ptr<Http> http);

  base::Result<ObjectFacts> stat(const ObjectName& name,
                                 const std::atomic<bool>* cancelled = nullptr) const override;
  base::Result<std::vector<ObjectFacts>> list(const std::string& bucket, const std::string& prefix,
                                              bool flat = false) const override;
  // Warns once if a bucket is in another region.
  base::Result<Remote> find(const ObjectName& name,
                            const std::atomic<bool>* cancelled = nullptr) const override;
  base::Result<std::string> read_text(const ObjectName& name) const override;
  // Compared by crc32c; on a mismatch the object is removed. See upload.h.
  base::Result<std::unique_ptr<Upload>> start_upload(const ObjectName& name,
                                                     const UploadOptions& options = {}) const override;
  // Compared by crc32c.
  base::Result<ObjectFacts> copy(const ObjectName& from, const ObjectName& to,
                                 const UploadOptions& options = {}) const override;
  // Concatenates at most 32 objects of a bucket into its object `to`, which may be one of them; no byte comes
  // here. Only the name and the generation of each part are used: "" accepts any generation; a part with
  // another generation is kFailedPrecondition.
  base::Result<ObjectFacts> compose(const std::vector<ObjectFacts>& parts, const ObjectName& to,
                                    const UploadOptions& options = {}) const;
  // Sends the new bytes as an object of the same folder, .append-NUMBER, composes both, and removes it.
  std::optional<std::uint64_t> least_appended() const override { return 1; }
  base::Result<ObjectFacts> append(const std::string& path, std::uint64_t size, const ObjectName& name,
                                   const ObjectFacts& old) const override;
  base::Status remove(const ObjectName& name, const std::string& generation = "") const override;

  // Returns a bucket's location: "US-CENTRAL1", "EU". Callers often lack this right: kPermissionDenied.
  base::Result<std::string> location(const std::string& bucket) const;
  // Returns the permissions among these ("storage.objects.get") that the caller has on a bucket.
  base::Result<std::vector<std::string>> granted(const std::string& bucket,
                                                 const std::vector<std::string>& permissions) const;
  // Warns, once per bucket and process, if this machine is in another region than the bucket: reading then
  // costs money.
  void warn_of_region(const std::string& bucket) const;

  const Access& access() const { return access_; }
  const std::string& endpoint() const { return endpoint_; }
  std::string object_address(const ObjectName& name) const;

 private:
  base::Result<HttpResponse> expect_ok(HttpRequest request, const std::string& what) const;

  const std::string endpoint_;
  const Access access_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, bool> regions_asked_;
};

// Reads ObjectFacts from the JSON of an object.
base::Result<ObjectFacts> parse_object(const std::string& json, const std::string& what);
// Returns the error for a user's request, with what to do about missing objects and rights.
Error explain(const HttpResponse& response, const std::string& what, const Access& access);
// Returns whether this region reads from a bucket's location for free: the same region, or a multi-region or
// dual region that contains it ("US", "EUR4"). True if the region is "".
bool is_near(const std::string& region, const std::string& location);
std::string base64_of_crc32c(std::uint32_t crc);
// Returns nothing if the text is not valid.
std::optional<std::uint32_t> crc32c_of_base64(const std::string& text);

}  // namespace sluice::cloud
