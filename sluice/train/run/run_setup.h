// What a run is given: its options, its data, the module, its steps and its callbacks.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/session/session.h"
#include "sluice/train/callback.h"
#include "sluice/train/input/input.h"
#include "sluice/train/options.h"
#include "sluice/train/steps.h"

namespace sluice::train {

using Callbacks = std::vector<std::shared_ptr<Callback>>;

// All that is referred to lives longer than the run.
struct RunSetup {
  const TrainOptions& options;
  Session& session;
  const Input& train;
  const Input* test;  // null: no test
  const std::vector<NamedTest>& more_tests;
  torch::nn::Module& module;
  const Steps& steps;
  Callbacks callbacks;

  // The epoch of the data that an epoch uses.
  int64_t data_epoch(int64_t epoch) const { return options.overfit_batches > 0 ? 0 : epoch; }
  StepOptions clip() const { return {.clip_norm = options.clip_norm, .clip_value = options.clip_value}; }
};

}  // namespace sluice::train
