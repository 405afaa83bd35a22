// Maps a file's bytes into memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::text {

// For reading. If the file is cut short later, the process ends (SIGBUS), as with any mapping. Threads: any.
class MappedFile {
 public:
  static base::Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::string_view bytes() const { return {static_cast<const char*>(memory_), size_}; }
  // Gives back the memory of the first `bytes`, which were read and are no longer needed.
  void forget(std::size_t bytes) const;

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace sluice::text
