// Copying files between disks, buckets and web servers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

struct CopyOptions {
  std::vector<std::string> from;  // paths, objects, http(s)://…; expand_urls expands patterns
  // A file's or an object's name. With several sources, a slash at its end, or a folder of this name, it is
  // the folder into which the sources are copied under their own names.
  std::string to;
  bool overwrite = false;  // without it, an existing target is an error and stays as it is
  int workers = 4;         // files at a time
  // Called after each file.
  std::function<void(std::int64_t files, std::int64_t total_files, std::uint64_t bytes)> progress;
};

struct CopyReport {
  std::int64_t files = 0;
  std::uint64_t bytes = 0;
};

// Copies files. A file appears under its name when it is whole and, from or to a bucket, its crc32c was
// compared. After the first error no further file is begun; copied files stay.
base::Result<CopyReport> copy_files(const CopyOptions& options);

}  // namespace sluice::data
