#include "sluice/train/optimizers/optimizers.h"

#include "sluice/base/error.h"

namespace sluice::train {
namespace {

using namespace torch::optim;

// Makes an optimizer over the groups that the options ask for. `settings` has everything except the weight
// decay.
template <typename Optimizer, typename Settings>
std::unique_ptr<Optimizer> over_groups(const TrainOptions& options,
                                       const std::vector<torch::Tensor>& parameters, Settings settings) {
  settings.weight_decay(options.weight_decay);
  if (!options.no_decay) return std::make_unique<Optimizer>(parameters, settings);
  std::vector<torch::Tensor> matrices, vectors;
  for (const torch::Tensor& parameter : parameters)
    (parameter.dim() < 2 ? vectors : matrices).push_back(parameter);
  std::vector<OptimizerParamGroup> groups;
  if (!matrices.empty()) groups.emplace_back(matrices, std::make_unique<Settings>(settings));
  settings.weight_decay(0);
  if (!vectors.empty()) groups.emplace_back(vectors, std::make_unique<Settings>(settings));
  return std::make_unique<Optimizer>(groups, settings);
}

template <typename Settings>
Settings with_eps(const TrainOptions& options, Settings settings) {
  if (options.eps > 0) settings.eps(options.eps);
  return settings;
}

template <typename Settings>
Settings with_betas(const TrainOptions& options) {
  Settings settings(options.lr);
  if (!options.betas.empty()) settings.betas({options.betas[0], options.betas[1]});
  return with_eps(options, settings);
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainOptions& options,
                                                        const std::vector<torch::Tensor>& parameters) {
  switch (options.optimizer) {
    case OptimizerKind::kSgd:
      return over_groups<SGD>(options, parameters,
                              SGDOptions(options.lr).momentum(options.momentum).nesterov(options.nesterov));
    case OptimizerKind::kAdam:
      return over_groups<Adam>(options, parameters, with_betas<AdamOptions>(options));
    case OptimizerKind::kAdamW:
      return over_groups<AdamW>(options, parameters, with_betas<AdamWOptions>(options));
    case OptimizerKind::kRmsProp:
      return over_groups<RMSprop>(options, parameters,
                                  with_eps(options, RMSpropOptions(options.lr).momentum(options.momentum)));
    case OptimizerKind::kAdagrad:
      return over_groups<Adagrad>(options, parameters, with_eps(options, AdagradOptions(options.lr)));
  }
  throw_error(Code::kInternal, "an optimizer without a case");
}

}  // namespace sluice::train
