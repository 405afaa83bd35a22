// One process compiles a program, and the others that share its cache wait for the entry.
//
// The claim is a lock on a file next to the entry (flock), which ends with its process. If the folder stands
// for a bucket, the process that has the file's lock also asks for one in the bucket (remote_lock.h). Neither
// is needed for correct entries: if they cannot be had, two processes compile the same program.
#pragma once

#include <memory>
#include <string>

#include "sluice/pjrt/cache/remote_lock.h"

namespace sluice::pjrt {

class CompileClaim {
 public:
  // No claim.
  CompileClaim() = default;
  // Waits until this process may compile the entry `name` of `folder`, which must exist, or until another one
  // has ended its claim. `program` is for messages.
  static CompileClaim take(const std::string& folder, const std::string& name, const std::string& program,
                           const WaitTimes& times);
  // Ends the claim; the entry should be there by then.
  ~CompileClaim();
  CompileClaim(CompileClaim&& other) noexcept;
  CompileClaim& operator=(CompileClaim&& other) noexcept;

  LockState state() const { return state_; }
  // Whether another process had the claim meanwhile, so that the entry may be there now.
  bool waited() const { return waited_; }

 private:
  LockState lock_file(const std::string& path, const WaitTimes& times, Patience& patience);

  std::string path_;     // the lock file's
  int descriptor_ = -1;  // of the lock file, which is locked
  std::unique_ptr<RemoteLock> remote_;
  LockState state_ = LockState::kNone;
  bool waited_ = false;
};

}  // namespace sluice::pjrt
