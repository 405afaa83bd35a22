// Evaluation mode for as long as something lives.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <utility>
#include <vector>

namespace sluice::models {

// Puts a module and all below it in eval mode; at the end each one has the mode that it had. The module must
// outlive it, and keep its modules.
class EvalMode {
 public:
  explicit EvalMode(torch::nn::Module& module) : module_(module), training_(module.is_training()) {
    for (const auto& part : module.modules(/*include_self=*/false))
      parts_.emplace_back(part, part->is_training());
    module.eval();
  }
  ~EvalMode() {
    module_.train(training_);
    // A module sets those below it, which come behind it.
    for (const auto& [part, training] : parts_) part->train(training);
  }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  torch::nn::Module& module_;
  const bool training_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> parts_;
};

}  // namespace sluice::models
