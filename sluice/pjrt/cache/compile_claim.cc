#include "sluice/pjrt/cache/compile_claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/log.h"

namespace sluice::pjrt {
namespace compile_claim_detail {

// Returns a file open for locking, which is made if it is missing; negative if that fails. Each entry has a
// file of its own, which is open for writing: base::FolderLock would let one program at a time be compiled,
// and NFS gives its exclusive lock only for files that are open for writing.
int open_lock(const std::string& path) {
  // In a shared and trusted folder the other users wait, too.
  const mode_t mode = base::environment_flag("SLUICE_CACHE_TRUST", false) ? 0666 : 0600;
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
}

// Returns whether the open file still has this name. A process that ends its claim removes the name first;
// one that dies leaves it.
bool has_name(int descriptor, const std::string& path) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace compile_claim_detail

LockState CompileClaim::lock_file(const std::string& path, const WaitTimes& times, Patience& patience) {
  for (;;) {
    const int descriptor = compile_claim_detail::open_lock(path);
    if (descriptor < 0) return LockState::kNone;
    LockState state = LockState::kHeld;
    while (state == LockState::kHeld && ::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) {
        if (!patience.pause(times.pause)) state = LockState::kGivenUp;
      } else if (errno != EINTR) {
        state = LockState::kNone;
      }
    }
    if (state == LockState::kHeld && compile_claim_detail::has_name(descriptor, path)) {
      path_ = path;
      descriptor_ = descriptor;
      return state;
    }
    ::close(descriptor);
    if (state != LockState::kHeld) return state;
    if (patience.waited()) return LockState::kReleased;
    // Another process ended its claim between open() and flock().
  }
}

CompileClaim CompileClaim::take(const std::string& folder, const std::string& name,
                                const std::string& program, const WaitTimes& times) {
  const std::string path = base::join_path(folder, name) + ".lock";
  Patience patience(times, [&] {
    base::info("the program for '", program, "' is being compiled by another process, which holds ", path,
               " or the lock in the bucket; this process waits for it");
  });
  CompileClaim claim;
  claim.state_ = claim.lock_file(path, times, patience);
  if (claim.state_ == LockState::kHeld && patience.waited())
    base::info("the process that compiled the program for '", program,
               "' has ended, so this process does it");
  if (claim.state_ == LockState::kHeld) {
    patience.restart_pauses();
    if (const auto remote = lock_entry(folder, name, times, patience, &claim.remote_)) claim.state_ = *remote;
  }
  claim.waited_ = patience.waited();
  return claim;
}

CompileClaim::CompileClaim(CompileClaim&& other) noexcept { *this = std::move(other); }

CompileClaim& CompileClaim::operator=(CompileClaim&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(remote_, other.remote_);
  std::swap(state_, other.state_);
  std::swap(waited_, other.waited_);
  return *this;
}

CompileClaim::~CompileClaim() {
  remote_.reset();
  if (descriptor_ < 0) return;
  if (compile_claim_detail::has_name(descriptor_, path_)) (void)::unlink(path_.c_str());
  ::close(descriptor_);
}

}  // namespace sluice::pjrt
