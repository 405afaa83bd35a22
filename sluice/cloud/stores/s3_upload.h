// Uploads to S3: as one request, or in parts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/cloud/stores/s3.h"

namespace sluice::cloud {

// Returns the headers that make a PUT a copy of this content.
std::vector<std::string> copy_headers(const ObjectName& from, const ObjectFacts& facts);

// Returns whether, after this error, the object must be checked: an earlier request whose answer was lost may
// have been carried out.
bool is_repetition(Code code);

// A multipart upload; if it is dropped before it is complete, its parts are removed. Threads: one at a time.
class S3Parts {
 public:
  S3Parts(const S3& store, ObjectName name, const UploadOptions& options)
      : store_(store), name_(std::move(name)), options_(options) {}
  ~S3Parts();

  bool empty() const { return tags_.empty(); }
  base::Status put(const std::string& bytes);
  base::Status copy(const ObjectName& from, const ObjectFacts& facts, std::uint64_t first,
                    std::uint64_t last);
  // Makes the object appear. `crc32c`: of the whole, for the server to compare and store.
  base::Status complete(std::optional<std::uint32_t> crc32c);
  // Returns whether the object was made of this number of parts, by its ETag.
  bool made(const ObjectFacts& facts) const;

 private:
  base::Status begin();
  base::Result<HttpResponse> send(std::vector<std::string> headers, const std::string& bytes);
  std::string query(std::size_t part) const;

  const S3& store_;
  const ObjectName name_;
  const UploadOptions options_;
  std::string id_;                 // of the upload; "" before the first part and after the end
  std::vector<std::string> tags_;  // ETags of the parts
  std::vector<std::string> sums_;  // the parts' CRC-32C in base64; "" if unknown
};

class S3Upload : public Upload {
 public:
  S3Upload(const S3& store, const ObjectName& name, const UploadOptions& options)
      : Upload(options.chunk_bytes),
        store_(store),
        name_(name),
        options_(options),
        parts_(store, name, options) {}
  base::Result<ObjectFacts> finish() override;

 private:
  base::Status send_chunk() override;
  base::Status put_whole();

  const S3& store_;
  const ObjectName name_;
  const UploadOptions options_;
  S3Parts parts_;
};

}  // namespace sluice::cloud
