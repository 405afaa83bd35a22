// Updates that are not made because their loss or gradients are NaN or infinite (--on-nan skip).
#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "sluice/session/session.h"

namespace sluice::train {

// An update is computed in any case, and where it must not be made the device puts the values from before it
// back: nothing is read, and the update stays one program. Weights, what optimizers keep for them, and the
// module's buffers are as before; the numbers of steps that Adam, RMSprop and Adagrad count go on. Called
// before, within and after each step, on all processes alike. Threads: the session's.
class SkippedUpdates {
 public:
  SkippedUpdates(Session& session, torch::nn::Module& model) : session_(session), model_(model) {}
  // Before the forward pass of an update's first batch.
  void begin_step();
  // With the gradients of all batches in place, before the optimizers' step. Averages them over the replicas.
  void before_update(const torch::Tensor& loss, const std::vector<torch::optim::Optimizer*>& optimizers);
  // Right after it, within the same program.
  void after_update();
  // After the last update of the step. One element, float: 1 where an update of this step was not made.
  torch::Tensor end_step();

 private:
  using Slots = std::vector<std::pair<std::string, torch::Tensor>>;
  using Held = std::vector<std::pair<torch::Tensor, torch::Tensor>>;  // a tensor, and its value before
  Slots slots() const;
  Session& session_;
  torch::nn::Module& model_;
  std::vector<torch::optim::Optimizer*> optimizers_;
  torch::Tensor made_;      // bool, of the update between before_update() and after_update()
  torch::Tensor all_made_;  // bool, of the step
  Held weights_, buffers_;
  Slots slots_;  // as they were; an optimizer may replace its tensors
};

}  // namespace sluice::train
