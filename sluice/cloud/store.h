// Objects in buckets of any supported service: Cloud Storage, S3, Azure Blob Storage, Hugging Face's hub.
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
// for a bucket itself, with or without a slash at the end.
struct ObjectName {
  std::string bucket, object;
  std::string scheme = "gs";
  std::string url() const { return scheme + "://" + bucket + "/" + object; }
  // Returns another object of the same bucket.
  ObjectName beside(std::string other) const { return {bucket, std::move(other), scheme}; }
};
// Returns whether a URL has one of these four schemes.
bool is_object_url(std::string_view url);
bool is_gs(std::string_view url);  // only gs://
base::Result<ObjectName> parse_object_url(const std::string& url);

struct ObjectFacts {
  std::string name = {};  // without the bucket
  std::uint64_t size = 0;
  std::string generation = {};  // differs for every content: a generation, an ETag, a file's hash
  std::optional<std::uint32_t> crc32c = std::nullopt;
};

struct UploadOptions {
  // The generation to replace; "0": the object must not exist. Otherwise kFailedPrecondition.
  std::optional<std::string> if_generation;
  std::size_t chunk_bytes = 16 << 20;  // a multiple of 256 KiB; held in memory
  bool grows = false;  // the object is to be one that Store::append can continue (Azure: made of blocks)
  const std::atomic<bool>* cancelled = nullptr;
};

// Checks that an upload may have this name. kInvalidArgument if it is empty or a folder's; `thing` is
// "object", or what the store calls one.
base::Status check_written_name(const ObjectName& name, const char* thing);

// An upload, written piece by piece. The object appears, whole, with finish(); an upload that is dropped
// leaves nothing. Threads: one at a time.
class Upload {
 public:
  virtual ~Upload() = default;
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  base::Status write(const void* bytes, std::size_t size);
  base::Status write(std::string_view bytes) { return write(bytes.data(), bytes.size()); }
  // Sends the rest and compares the server's object with what was written. kAborted: the server has forgotten
  // the upload; begin again.
  virtual base::Result<ObjectFacts> finish() = 0;
  std::uint64_t size() const { return written_; }

 protected:
  explicit Upload(std::size_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  std::string buffer_;         // written but not sent
  std::uint64_t written_ = 0;  // bytes
  std::uint32_t crc_ = 0;      // CRC-32C of all bytes written

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
  // Lists objects whose names begin with `prefix`, in the order of their bytes. `flat`: only names without a
  // further slash.
  virtual base::Result<std::vector<ObjectFacts>> list(const std::string& bucket, const std::string& prefix,
                                                      bool flat = false) const = 0;
  // Returns the URLs that match SCHEME://bucket/pattern with * and ? (not across a slash), ** (across
  // slashes), [abc]; at least one.
  base::Result<std::vector<std::string>> glob(const std::string& url) const;
  // Returns the object as it is now, for open_reader.
  virtual base::Result<Remote> find(const ObjectName& name,
                                    const std::atomic<bool>* cancelled = nullptr) const = 0;
  // Returns the content of a small object.
  virtual base::Result<std::string> read_text(const ObjectName& name) const = 0;

  // Uploads a file or a text as one object and compares it with what the server has. Readers of the bucket
  // see the whole old object or the whole new one.
  base::Result<ObjectFacts> upload_file(const std::string& path, const ObjectName& name,
                                        const UploadOptions& options = {}) const;
  base::Result<ObjectFacts> upload_text(std::string_view text, const ObjectName& name,
                                        const UploadOptions& options = {}) const;
  // Uploads a file's bytes from `from` up to `to`. kFailedPrecondition if the file has fewer.
  base::Result<ObjectFacts> upload_part(const std::string& path, std::uint64_t from, std::uint64_t to,
                                        const ObjectName& name, const UploadOptions& options = {}) const;
  // Returns the size in bytes from which on append() can continue an object; nothing if the store cannot.
  virtual std::optional<std::uint64_t> least_appended() const { return std::nullopt; }
  // Appends to the object, as `old` describes it, the file's bytes from old.size up to `size`. The file's
  // first old.size bytes must be the object's. Only the new bytes are sent (Azure: now and then some of the
  // last ones again). Readers of the bucket see the old object or the new one. kFailedPrecondition: the
  // object has another generation. After any error but kUnavailable, the whole file may still be accepted.
  virtual base::Result<ObjectFacts> append(const std::string& path, std::uint64_t size,
                                           const ObjectName& name, const ObjectFacts& old) const;
  // The store must outlive the upload.
  virtual base::Result<std::unique_ptr<Upload>> start_upload(const ObjectName& name,
                                                             const UploadOptions& options = {}) const = 0;
  // Returns whether copy() supports this: within a store, and for Azure within an account.
  virtual bool copies(const ObjectName& from, const ObjectName& to) const { return from.scheme == to.scheme; }
  // Copies on the server; no byte comes here.
  virtual base::Result<ObjectFacts> copy(const ObjectName& from, const ObjectName& to,
                                         const UploadOptions& options = {}) const = 0;
  // kNotFound for a missing object (S3 does not report it). A generation is respected only if the store
  // supports it.
  virtual base::Status remove(const ObjectName& name, const std::string& generation = "") const = 0;
};

// Returns the process's store for such objects. Credentials are searched for at the first call.
base::Result<Store*> store_of(const ObjectName& name);

// Returns a store that can be written: not the hub.
base::Result<Store*> store_to_write(const ObjectName& name);

// Returns a file's bytes from `from` up to `to`; kFailedPrecondition if it has fewer.
base::Result<std::string> read_part(const std::string& path, std::uint64_t from, std::uint64_t to);

// Returns whether a name matches a pattern of Store::glob.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace sluice::cloud
