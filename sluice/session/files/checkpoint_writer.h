// A thread that writes checkpoints.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/pieces/shared_checkpoint.h"

namespace sluice::sessions {

// Writes checkpoints on its own thread, one after the other. Threads: one at a time.
class CheckpointWriter {
 public:
  ~CheckpointWriter();
  // Waits for the checkpoint before this one; if that failed, returns its error and does not write this one.
  // A snapshot with pieces is written by all peers together: all of them call this.
  base::Status write(Snapshot snapshot, std::vector<std::string> folders);
  base::Status wait();
  // Sets the copy in a bucket that is made of each checkpoint; an error of it becomes the write's.
  void set_copy(CheckpointCopy copy) { copy_ = std::move(copy); }
  // Sets the processes that write pieces together.
  void set_peers(std::shared_ptr<SavePeers> peers) { peers_ = std::move(peers); }

 private:
  base::Status write_now(Snapshot& snapshot, const std::vector<std::string>& folders);

  CheckpointCopy copy_;
  std::shared_ptr<SavePeers> peers_;
  std::future<base::Status> running_;
};

}  // namespace sluice::sessions
