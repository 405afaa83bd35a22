// Writing tar archives: plain ustar, so that small members cost no more than their 512-byte header.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/base/files/file.h"
#include "sluice/base/result.h"

namespace sluice::data {

// Returns a member's header and padded payload. A name that ustar cannot hold (over 100 bytes and no slash to
// split it at, or over 256) gets a PAX header with its path, and so does a payload of 8 GiB or more. Mode is
// 0644, time and owner are 0: the same input gives the same bytes.
std::string tar_member(std::string_view name, std::string_view payload);
// Returns the two blocks of zeros at the end, and padding to the usual record of 10,240 bytes.
std::string tar_end(std::uint64_t size_so_far);

// Writes one shard, which gets its name when finish() succeeds: whole or not at all. Threads: one at a time.
class TarWriter {
 public:
  static base::Result<TarWriter> create(const std::string& path);

  base::Status add(std::string_view name, std::string_view payload);
  base::Status finish();
  std::uint64_t bytes() const { return file_.size() + pending_.size(); }

 private:
  explicit TarWriter(base::AtomicFile file) : file_(std::move(file)) {}
  base::Status flush();

  base::AtomicFile file_;
  std::string pending_;
};

}  // namespace sluice::data
