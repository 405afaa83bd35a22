// Cloud Storage's resumable upload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/cloud/storage.h"

namespace sluice::cloud {

// A failed chunk is sent again from the byte after those that the server has.
class ResumableUpload : public Upload {
 public:
  // Called by Storage::start_upload; the storage must outlive the upload.
  ResumableUpload(const Storage& storage, ObjectName name, std::string session, const UploadOptions& options);
  ~ResumableUpload() override;

  // Compares the server's crc32c with the crc32c of what was written.
  base::Result<ObjectFacts> finish() override;

 private:
  base::Result<HttpResponse> put(std::string_view body, const std::string& content_range);
  base::Status send_chunk() override;
  base::Result<std::optional<HttpResponse>> send(bool last);
  base::Result<std::uint64_t> committed(const HttpResponse& response) const;
  base::Result<ObjectFacts> check(const HttpResponse& response);

  const Storage& storage_;
  const ObjectName name_;
  const std::string session_;
  const UploadOptions options_;
  std::uint64_t sent_ = 0;  // bytes that the server has
  bool finished_ = false;
};

}  // namespace sluice::cloud
