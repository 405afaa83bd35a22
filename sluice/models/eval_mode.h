// Evaluation mode during the life of an object.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <utility>
#include <vector>

namespace sluice::models {

// Puts a module and its submodules in eval mode; the destructor restores the mode of each. The module must
// outlive the object, and keep its submodules.
class EvalMode {
 public:
  explicit EvalMode(torch::nn::Module& module) : module_(module), training_(module.is_training()) {
    for (const auto& part : module.modules(/*include_self=*/false))
      parts_.emplace_back(part, part->is_training());
    module.eval();
  }
  ~EvalMode() {
    module_.train(training_);
    // train() also sets the submodules, so a module is restored before its submodules.
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
