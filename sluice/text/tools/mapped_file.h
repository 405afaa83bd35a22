// A file's bytes in memory, as they are needed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::text {

// To read. A file that is cut short meanwhile ends the process (SIGBUS), as with any mapping. Threads: any.
class MappedFile {
 public:
  static base::Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::string_view bytes() const { return {static_cast<const char*>(memory_), size_}; }
  // Pages that were read and are needed no more are given back: `bytes` from the front.
  void forget(std::size_t bytes) const;

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace sluice::text
