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
#include "sluice/cloud/credentials.h"
#include "sluice/cloud/http.h"

namespace sluice::cloud {

// gs://bucket/object. The object is empty for gs://bucket and gs://bucket/.
struct GsName {
  std::string bucket, object;
  std::string url() const { return "gs://" + bucket + "/" + object; }
};
bool is_gs(std::string_view url);
base::Result<GsName> parse_gs(const std::string& url);

struct ObjectFacts {
  std::string name;  // without the bucket
  std::uint64_t size = 0;
  std::string generation;  // another one for every content
  std::optional<std::uint32_t> crc32c;
};

// How requests of one service are sent: with whose credentials, over which connections.
struct Access {
  std::shared_ptr<Http> http;
  std::shared_ptr<Credentials> credentials;  // null: none at all
  bool direct = false;                       // never through a proxy
  // The project that pays for requests to buckets whose requester pays (x-goog-user-project); "": none.
  std::string payer = {};

  // Http::once and Http::send with the token. On 401 the token is fetched again, and the request sent again,
  // once.
  base::Result<HttpResponse> once(HttpRequest request) const;
  base::Result<HttpResponse> send(HttpRequest request, const std::string& what) const;
};

struct UploadOptions {
  // The generation that is replaced; "0": nothing of this name may be there. Else kFailedPrecondition.
  std::optional<std::string> if_generation;
  std::size_t chunk_bytes = 16 << 20;  // a multiple of 256 KiB; held in memory
  const std::atomic<bool>* cancelled = nullptr;
};

class Upload;

// Threads: all members from any thread.
class Storage {
 public:
  // `endpoint`: "https://storage.googleapis.com", or an emulator's, without a slash at the end.
  Storage(std::string endpoint, Access access) : endpoint_(std::move(endpoint)), access_(std::move(access)) {}

  // GOOGLE_CLOUD_QUOTA_PROJECT is the payer. The one of this process: Google's, or that of
  // STORAGE_EMULATOR_HOST=[http://]host:port (then without credentials). Credentials are looked for at the
  // first call.
  static base::Result<Storage*> shared();
  // Another one with connections of the caller's.
  static base::Result<std::unique_ptr<Storage>> of_environment(std::shared_ptr<Http> http);

  base::Result<ObjectFacts> stat(const GsName& name, const std::atomic<bool>* cancelled = nullptr) const;
  // Objects whose names begin with `prefix`, in the order of their bytes. `flat`: only those without a
  // further slash.
  base::Result<std::vector<ObjectFacts>> list(const std::string& bucket, const std::string& prefix,
                                              bool flat = false) const;
  // gs://bucket/pattern with * and ? (not over a slash), ** (over slashes), [abc]: the URLs that match, at
  // least one.
  base::Result<std::vector<std::string>> glob(const std::string& url) const;

  // A file or a text as one object, checked by its crc32c; on a mismatch the object is removed. Whoever reads
  // the bucket sees the old object or the new one, whole.
  base::Result<ObjectFacts> upload_file(const std::string& path, const GsName& name,
                                        const UploadOptions& options = {}) const;
  base::Result<ObjectFacts> upload_text(std::string_view text, const GsName& name,
                                        const UploadOptions& options = {}) const;
  // Piece by piece; see upload.h.
  base::Result<std::unique_ptr<Upload>> start_upload(const GsName& name,
                                                     const UploadOptions& options = {}) const;
  // Within Cloud Storage: no byte comes here. Checked by crc32c.
  base::Result<ObjectFacts> copy(const GsName& from, const GsName& to,
                                 const UploadOptions& options = {}) const;
  // The contents of some objects of one bucket, at most 32, one behind the other, as the object `to` of that
  // bucket, which may be one of them; no byte comes here.
  base::Result<ObjectFacts> compose(const std::vector<GsName>& parts, const GsName& to,
                                    const UploadOptions& options = {}) const;
  // A missing object is kNotFound. With a generation, that one only.
  base::Status remove(const GsName& name, const std::string& generation = "") const;
  // The content of a small object.
  base::Result<std::string> read_text(const GsName& name) const;

  // Where a bucket is: "US-CENTRAL1", "EU". The right to ask is often not given: kPermissionDenied.
  base::Result<std::string> location(const std::string& bucket) const;
  // Those of the permissions ("storage.objects.get") that the caller has on a bucket.
  base::Result<std::vector<std::string>> granted(const std::string& bucket,
                                                 const std::vector<std::string>& permissions) const;
  // One warning a bucket and process when this machine is in another region than the bucket: reading then
  // costs money.
  void warn_of_region(const std::string& bucket) const;

  const Access& access() const { return access_; }
  const std::string& endpoint() const { return endpoint_; }
  std::string object_address(const GsName& name) const;

 private:
  base::Result<HttpResponse> expect_ok(HttpRequest request, const std::string& what) const;

  const std::string endpoint_;
  const Access access_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, bool> regions_asked_;
};

// ObjectFacts of the JSON of an object.
base::Result<ObjectFacts> parse_object(const std::string& json, const std::string& what);
// The same as an error of a user's request: with what to do about missing objects and rights.
Error explain(const HttpResponse& response, const std::string& what, const Access& access);
// A bucket's location that this region reads from for nothing: the same region, or a multi-region or
// dual region that holds it ("US", "EUR4"); "" as the region: true.
bool is_near(const std::string& region, const std::string& location);
// Whether a name matches a pattern as Storage::glob takes it.
bool matches(std::string_view pattern, std::string_view name);

std::string base64_of_crc32c(std::uint32_t crc);
// Nothing for what is no such text.
std::optional<std::uint32_t> crc32c_of_base64(const std::string& text);

}  // namespace sluice::cloud
