// An open file, internal to this room.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "sluice/base/result.h"

namespace sluice::base {

// A file that is opened for reading and closed with the scope. The descriptor is negative if that failed;
// errno says why.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags) : descriptor_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// Reads all bytes to the file's end, about `expected` of them. Errors name `path`.
Result<std::string> read_to_end(const OpenFile& file, size_t expected, const std::string& path);

}  // namespace sluice::base
