// A resumable upload, written piece by piece.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/cloud/storage.h"

namespace sluice::cloud {

// The object appears with finish(), whole; an upload that is dropped leaves nothing. A chunk that fails is
// sent again from where the server has it. Threads: one at a time.
class Upload {
 public:
  // By Storage::start_upload; the storage must outlive it.
  Upload(const Storage& storage, GsName name, std::string session, const UploadOptions& options);
  ~Upload();

  base::Status write(const void* bytes, std::size_t size);
  base::Status write(std::string_view bytes) { return write(bytes.data(), bytes.size()); }
  // Sends the rest and compares the server's crc32c with that of what was written. A session that the server
  // has forgotten is kAborted: begin again.
  base::Result<ObjectFacts> finish();
  std::uint64_t size() const { return written_; }

 private:
  base::Result<HttpResponse> put(std::string_view body, const std::string& content_range);
  base::Result<std::optional<HttpResponse>> send_chunk(bool last);
  base::Result<std::uint64_t> committed(const HttpResponse& response) const;
  base::Result<ObjectFacts> check(const HttpResponse& response);

  const Storage& storage_;
  const GsName name_;
  const std::string session_;
  const UploadOptions options_;
  std::string buffer_;
  std::uint64_t written_ = 0;
  std::uint64_t sent_ = 0;  // bytes that the server has
  std::uint32_t crc_ = 0;   // of all that was written
  bool finished_ = false;
};

}  // namespace sluice::cloud
