// Skips updates whose loss or gradients are NaN or infinite (--on-nan skip).
#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "sluice/session/session.h"

namespace sluice::train {

// Every update is computed; if it must not be made, the device restores the values from before it: nothing is
// read, and the update stays one program. It restores the weights, the optimizers' values for them, and the
// module's buffers; the step numbers that Adam, RMSprop and Adagrad count still increase. Called before,
// within and after each step, in the same way on all processes. Threads: the session's.
class SkippedUpdates {
 public:
  SkippedUpdates(Session& session, torch::nn::Module& model) : session_(session), model_(model) {}
  // Call it before the forward pass of an update's first batch.
  void begin_step();
  // Call it with the gradients of all batches in place, before the optimizers' step. Averages them over the
  // replicas.
  void before_update(const torch::Tensor& loss, const std::vector<torch::optim::Optimizer*>& optimizers);
  // Call it right after the optimizers' step, within the same program.
  void after_update();
  // Call it after the last update of the step. Returns one element, float: 1 if an update of this step was
  // not made.
  torch::Tensor end_step();

 private:
  using Slots = std::vector<std::pair<std::string, torch::Tensor>>;
  using Held = std::vector<std::pair<torch::Tensor, torch::Tensor>>;  // a tensor, and its value before
  Slots slots() const;
  Session& session_;
  torch::nn::Module& model_;
  std::vector<torch::optim::Optimizer*> optimizers_;
  torch::Tensor made_;      // bool, for the update between before_update() and after_update()
  torch::Tensor all_made_;  // bool, for the step
  Held weights_, buffers_;
  Slots slots_;  // the old values; an optimizer may replace its tensors
};

}  // namespace sluice::train
