#include "sluice/train/optimizers.h"

#include "sluice/base/error.h"
#include "sluice/base/strings.h"

namespace sluice::train {

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names = {"sgd", "adam", "adamw"};
  return names;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainOptions& options,
                                                        const std::vector<torch::Tensor>& parameters) {
  using namespace torch::optim;
  const double decay = options.weight_decay;
  if (options.optimizer == "sgd")
    return std::make_unique<SGD>(parameters,
                                 SGDOptions(options.lr).momentum(options.momentum).weight_decay(decay));
  if (options.optimizer == "adam")
    return std::make_unique<Adam>(parameters, AdamOptions(options.lr).weight_decay(decay));
  if (options.optimizer == "adamw")
    return std::make_unique<AdamW>(parameters, AdamWOptions(options.lr).weight_decay(decay));
  const std::string near = base::nearest(options.optimizer, optimizer_names());
  throw Error(Code::kNotFound,
              base::str("there is no optimizer \"", options.optimizer, "\"",
                        near.empty() ? std::string() : base::str("; did you mean \"", near, "\"?"),
                        " Known: ", base::join(optimizer_names(), ", ")));
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

}  // namespace sluice::train
