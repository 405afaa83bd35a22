// A lock that lets one process at a time use a folder.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "sluice/base/result.h"

namespace sluice::base {

// The exclusive use of a folder among those who ask for it (flock). It ends with the process. On a file
// system without such locks everyone gets it.
class FolderLock {
 public:
  // Returns nothing when someone else has the lock, in this process or another.
  static Result<std::optional<FolderLock>> take(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FolderLock& operator=(FolderLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FolderLock();

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace sluice::base
