#include "sluice/train/optimizers.h"

#include "sluice/base/error.h"

namespace sluice::train {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainOptions& options,
                                                        const std::vector<torch::Tensor>& parameters) {
  using namespace torch::optim;
  const double decay = options.weight_decay;
  switch (options.optimizer) {
    case OptimizerKind::kSgd:
      return std::make_unique<SGD>(parameters,
                                   SGDOptions(options.lr).momentum(options.momentum).weight_decay(decay));
    case OptimizerKind::kAdam:
      return std::make_unique<Adam>(parameters, AdamOptions(options.lr).weight_decay(decay));
    case OptimizerKind::kAdamW:
      return std::make_unique<AdamW>(parameters, AdamWOptions(options.lr).weight_decay(decay));
  }
  throw_error(Code::kInternal, "an optimizer without a case");
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

}  // namespace sluice::train
