// A lock in a bucket: a small object that its holder writes again and again.
//
// No clocks are compared: who waits looks whether the object changes. If it does not for some time, the
// holder has died, and one of the waiting processes replaces the object.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "sluice/pjrt/cache/patience.h"
#include "sluice/pjrt/cache/remote_cache.h"

namespace sluice::pjrt {

class RemoteLock {
 public:
  // Waits for the lock of the entry at `url`. `*lock` is set for kHeld, `*error` for kNone.
  static LockState take(const RemoteCache& how, const std::string& url, const WaitTimes& times,
                        Patience& patience, std::unique_ptr<RemoteLock>* lock, base::Status* error);
  // Removes the object.
  ~RemoteLock();
  RemoteLock(const RemoteLock&) = delete;
  RemoteLock& operator=(const RemoteLock&) = delete;

 private:
  RemoteLock(const RemoteCache& how, std::string url, std::string generation, double beat);
  // Writes the object until the lock is given back.
  void beat(double seconds);

  RemoteCache how_;
  std::string url_;  // the lock's
  std::string
      generation_;  // of the object, as this process wrote it last; "": another process has replaced it
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace sluice::pjrt
