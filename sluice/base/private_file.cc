#include "sluice/base/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "sluice/base/file.h"
#include "sluice/base/open_file.h"
#include "sluice/base/trusted_file.h"

namespace sluice::base {
namespace {

// 0, or what went wrong.
int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return ::fsync(descriptor) == 0 ? 0 : errno;
}

}  // namespace

Status make_private_folder(const std::string& path) {
  if (const std::string above = parent_path(path); !above.empty() && above != path)
    SLUICE_OK(make_directories(above));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno(errno, "make the folder", path);
  return check_private_folder(path);
}

Status write_private_file(const std::string& path, std::string_view bytes) {
  static std::atomic<int> number{0};
  const std::string unfinished = str(path, ".", ::getpid(), "-", number++, ".new");
  int error = 0;
  {
    ::unlink(unfinished.c_str());  // of a process of this number that was killed
    const OpenFile file(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file.descriptor() < 0) return fail_errno(errno, "write", path);
    error = write_all(file.descriptor(), bytes);
  }
  if (error == 0 && ::rename(unfinished.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return sync_directory(parent_path(path));
  ::unlink(unfinished.c_str());
  return fail_errno(error, "write", path);
}

}  // namespace sluice::base
