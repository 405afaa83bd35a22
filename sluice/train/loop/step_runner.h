// One update of a training: the forward and backward passes of its batches, and the optimizers' step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "sluice/session/feed.h"
#include "sluice/train/checkpoints/checkpoint_keeper.h"
#include "sluice/train/evaluation/evaluate.h"
#include "sluice/train/loop/batch_group.h"
#include "sluice/train/loop/skipped_updates.h"
#include "sluice/train/optimizers/optimizer_set.h"
#include "sluice/train/report/epoch_report.h"
#include "sluice/train/run/callback_list.h"
#include "sluice/train/run/run_setup.h"
#include "sluice/train/run/run_state.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// Threads: the session's. Errors are thrown.
class StepRunner {
 public:
  // All of them live longer. `shapes`: the names of the run's shapes.
  StepRunner(const RunSetup& given, RunState& state, const OptimizerSet& optimizers, EpochReport& epoch,
             CheckpointKeeper& checkpoints, const CallbackList& callbacks, ShapeNames& shapes);
  // Makes one update with the feed's next batches; the state stays before it.
  void run(Feed& feed);
  // The values of the last update to log: the loss first, each of one element.
  const NamedValues& logged() const { return logged_; }
  // Adds to the group the gradients of a batch (or, with updating_step, makes all of its updates) and the
  // values to log.
  void train_batch(Batch& batch, BatchGroup& group);

 private:
  // Returns the group for the batches of the next update and their values.
  BatchGroup next_group() const;
  // Runs `work`; adds the number of the step to its errors.
  void in_step(const std::function<void()>& work) const;
  // Makes the update of an updating_step by the optimizer with this number.
  void update(size_t index, const torch::Tensor& loss, const Batch& batch);
  void end_step(const Batch& batch, int64_t batches);
  void count_skipped(const torch::Tensor& skipped);

  const RunSetup& given_;
  RunState& state_;
  const OptimizerSet& optimizers_;
  EpochReport& epoch_;
  CheckpointKeeper& checkpoints_;
  const CallbackList& callbacks_;
  ShapeNames& shapes_;
  NamedValues logged_;
  std::optional<SkippedUpdates> skipped_;  // for --on-nan skip
  int64_t skipped_in_a_row_ = 0;
  // Shows the session's pending functions whether the run still lives; they must not use it afterwards.
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace sluice::train
