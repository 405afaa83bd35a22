// The keeper of a run's checkpoints: `last`, `best` and top-STEP.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sluice/session/files/checkpoint_writer.h"
#include "sluice/train/checkpoints/log_folder.h"
#include "sluice/train/checkpoints/top_checkpoints.h"
#include "sluice/train/optimizers/optimizer_set.h"
#include "sluice/train/run/callback_list.h"
#include "sluice/train/run/run_setup.h"
#include "sluice/train/run/run_state.h"

namespace sluice::train {

// Errors are thrown. Threads: the session's; a checkpoint is written on the writer's thread.
class CheckpointKeeper {
 public:
  // All of them live longer.
  CheckpointKeeper(const RunSetup& given, RunState& state, LogFolder& folder, const CallbackList& callbacks,
                   const OptimizerSet& optimizers);
  // Opens the checkpoints of --save-top-k. Call it once the run is at its first step.
  void open_top();
  // Takes the values for a checkpoint, and begins to write it as `last`; with `best` also as `best`. All
  // processes call it.
  void save(bool best);
  // Waits for the checkpoint that is being written. Throws if it could not, or must not, be written: its
  // weights are NaN.
  void await();
  // Removes the checkpoints of --save-top-k that better ones have displaced.
  void remove_displaced();
  // Returns where the last good checkpoint is, as a sentence.
  std::string last_good();
  // Whether the run's log folder has this checkpoint. In a bucket: whether this part of the run has written
  // or read it.
  bool has(const char* name) const;

 private:
  void write(bool best);
  // Takes what process 0 alone writes: what the callbacks and the data remember.
  void note_progress();
  // Returns the local folders of this checkpoint; `last` is written after the others.
  std::vector<std::string> folders_of(bool best);

  const RunSetup& given_;
  RunState& state_;
  LogFolder& folder_;
  const CallbackList& callbacks_;
  const OptimizerSet& optimizers_;
  std::unique_ptr<TopCheckpoints> top_;  // for --save-top-k, on the leader
  sessions::CheckpointWriter writer_;
  std::set<std::string> saved_;       // local folders, written by this part of the run
  std::vector<std::string> writing_;  // local folders that the writer is writing
};

}  // namespace sluice::train
