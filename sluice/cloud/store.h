// Objects in buckets, whichever service keeps them: Cloud Storage, S3, Azure Blob Storage, Hugging Face's
// hub.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::cloud {

// gs://bucket/object, s3://bucket/object, az://account/container/blob (the bucket is "account/container") and
// hf://datasets/owner/name@revision/file (the bucket is "datasets/owner/name@revision"). The object is empty
// for a bucket itself, with or without a slash behind it.
struct ObjectName {
  std::string bucket, object;
  std::string scheme = "gs";
  std::string url() const { return scheme + "://" + bucket + "/" + object; }
  // Another object of the same bucket.
  ObjectName beside(std::string other) const { return {bucket, std::move(other), scheme}; }
};
// Whether a URL has one of these four schemes.
bool is_object_url(std::string_view url);
bool is_gs(std::string_view url);  // whether it is gs://
base::Result<ObjectName> parse_object_url(const std::string& url);

struct ObjectFacts {
  std::string name = {};  // without the bucket
  std::uint64_t size = 0;
  std::string generation = {};  // another one for every content: a generation, an ETag, a file's hash
  std::optional<std::uint32_t> crc32c = std::nullopt;
};

struct UploadOptions {
  // The generation that is replaced; "0": nothing of this name may be there. Else kFailedPrecondition.
  std::optional<std::string> if_generation;
  std::size_t chunk_bytes = 16 << 20;  // a multiple of 256 KiB; held in memory
  const std::atomic<bool>* cancelled = nullptr;
};

// An upload, written piece by piece. The object appears with finish(), whole; an upload that is dropped
// leaves nothing. Threads: one at a time.
class Upload {
 public:
  virtual ~Upload() = default;
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  base::Status write(const void* bytes, std::size_t size);
  base::Status write(std::string_view bytes) { return write(bytes.data(), bytes.size()); }
  // Sends the rest; what the server has then was compared with what was written. kAborted: the server has
  // forgotten the upload, begin again.
  virtual base::Result<ObjectFacts> finish() = 0;
  std::uint64_t size() const { return written_; }

 protected:
  explicit Upload(std::size_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  std::string buffer_;         // what was written and not sent
  std::uint64_t written_ = 0;  // bytes
  std::uint32_t crc_ = 0;      // CRC-32C of all that was written

 private:
  // Sends the buffer, which holds a whole chunk and is not the last, and empties it.
  virtual base::Status send_chunk() = 0;

  const std::size_t chunk_bytes_;
};

struct Remote;  // object_reader.h

// Threads: all members from any thread.
class Store {
 public:
  virtual ~Store() = default;

  virtual base::Result<ObjectFacts> stat(const ObjectName& name,
                                         const std::atomic<bool>* cancelled = nullptr) const = 0;
  // Objects whose names begin with `prefix`, in the order of their bytes. `flat`: only those without a
  // further slash.
  virtual base::Result<std::vector<ObjectFacts>> list(const std::string& bucket, const std::string& prefix,
                                                      bool flat = false) const = 0;
  // SCHEME://bucket/pattern with * and ? (not over a slash), ** (over slashes), [abc]: the URLs that match,
  // at least one.
  base::Result<std::vector<std::string>> glob(const std::string& url) const;
  // What open_reader reads: the object as it is now.
  virtual base::Result<Remote> find(const ObjectName& name,
                                    const std::atomic<bool>* cancelled = nullptr) const = 0;
  // The content of a small object.
  virtual base::Result<std::string> read_text(const ObjectName& name) const = 0;

  // A file or a text as one object, compared with what the server has. Whoever reads the bucket sees the old
  // object or the new one, whole.
  base::Result<ObjectFacts> upload_file(const std::string& path, const ObjectName& name,
                                        const UploadOptions& options = {}) const;
  base::Result<ObjectFacts> upload_text(std::string_view text, const ObjectName& name,
                                        const UploadOptions& options = {}) const;
  // The store must outlive the upload.
  virtual base::Result<std::unique_ptr<Upload>> start_upload(const ObjectName& name,
                                                             const UploadOptions& options = {}) const = 0;
  // Whether copy() can do it: within a store, and of Azure within an account.
  virtual bool copies(const ObjectName& from, const ObjectName& to) const { return from.scheme == to.scheme; }
  // No byte comes here.
  virtual base::Result<ObjectFacts> copy(const ObjectName& from, const ObjectName& to,
                                         const UploadOptions& options = {}) const = 0;
  // A missing object is kNotFound (S3 does not say so). With a generation, that one only where the store can.
  virtual base::Status remove(const ObjectName& name, const std::string& generation = "") const = 0;
};

// The store of this process that keeps such objects. Credentials are looked for at the first call.
base::Result<Store*> store_of(const ObjectName& name);

// The same, of one that can be written: not the hub.
base::Result<Store*> store_to_write(const ObjectName& name);

// Whether a name matches a pattern as Store::glob takes it.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace sluice::cloud
