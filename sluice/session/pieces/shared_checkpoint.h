// A checkpoint that several processes write together, each the pieces of its own devices.
//
// The folder has, for N processes, the files model-0000I-of-0000N.safetensors and
// state-0000I-of-0000N.safetensors of each process, an index for each of the two kinds (piece_index.h),
// state.json and the files that a task adds.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/session/files/checkpoint.h"

namespace sluice::sessions {

// The processes that write a checkpoint together, and the board on which they leave messages for each other.
// Threads: one writes at a time; the functions are called from its thread.
struct SavePeers {
  int index = 0, count = 1;  // of this process; process 0 leads
  std::function<base::Status(const std::string& key, const std::string& text)> put;
  std::function<base::Result<std::optional<std::string>>(const std::string& key)> get;
  std::function<base::Status()> status;  // an error once a process is lost
  int64_t saves = 0;                     // that this process has begun; the same in all
};

// The copy of a checkpoint in a bucket. Without functions there is no copy.
struct CheckpointCopy {
  // Returns the place of a new copy, as a text for the other processes.
  std::function<base::Result<std::string>()> begin;
  // Uploads the files of a local folder to the place; every process calls it for its own pieces.
  std::function<base::Status(const std::string& place, const std::string& folder)> send;
  // Uploads what is still missing of these local folders, which are equal, and makes the copy the
  // checkpoint of their names.
  std::function<base::Status(const std::string& place, const std::vector<std::string>& folders)> finish;
};

// Writes the settled snapshot, which has pieces, to `folders`, as write_checkpoints does. All processes call
// it with the snapshot that they took at one moment; only process 0's folders, progress and further files
// count, but all must see the parent of the first folder, unless there is a copy: then that folder is of each
// machine. Returns when the checkpoint is in its place, or has failed: with the same error in all processes,
// which says which process and which file. The old checkpoint then stays, also if a process is killed.
base::Status write_shared_checkpoint(const Snapshot& snapshot, const std::vector<std::string>& folders,
                                     SavePeers& peers, const CheckpointCopy& copy = {});

}  // namespace sluice::sessions
