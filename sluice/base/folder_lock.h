// One process at a time in a folder.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "sluice/base/result.h"

namespace sluice::base {

// The use of a folder by one at a time, among those who ask for it (flock). It ends with the process. Where
// the file system has no such locks everyone gets it.
class FolderLock {
 public:
  // Nothing when another one has it, in this process or another.
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
