#include "sluice/text/tools/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "sluice/base/files/file.h"

namespace sluice::text {

base::Result<MappedFile> MappedFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return base::fail_errno(errno, "open", path);
  MappedFile file;
  struct stat facts {};
  int error = fstat(descriptor, &facts) != 0 ? errno : 0;
  if (error == 0 && facts.st_size > 0) {
    void* const memory =
        mmap(nullptr, static_cast<std::size_t>(facts.st_size), PROT_READ, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) {
      error = errno;
    } else {
      file.memory_ = memory;
      file.size_ = static_cast<std::size_t>(facts.st_size);
    }
  }
  close(descriptor);
  if (error != 0) return base::fail_errno(error, "map", path);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (memory_ != nullptr) munmap(memory_, size_);
}

void MappedFile::forget(std::size_t bytes) const {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (memory_ != nullptr) madvise(memory_, bytes / page * page, MADV_DONTNEED);
}

}  // namespace sluice::text
