#include "sluice/train/optimizers/optimizer_set.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::train {
namespace optimizer_set_detail {

// Checks that the optimizers are over parameters of the model, and share none.
void check_setups(const std::vector<OptimizerSetup>& setups, const torch::nn::Module& model) {
  if (setups.empty()) throw_error(Code::kInvalidArgument, "configure_optimizers returned no optimizer");
  std::map<const void*, std::string> names;
  for (const auto& item : model.named_parameters()) names[item.value().unsafeGetTensorImpl()] = item.key();
  std::set<const void*> taken;
  for (size_t i = 0; i < setups.size(); ++i) {
    if (setups[i].optimizer == nullptr)
      throw_error(Code::kInvalidArgument, base::str("configure_optimizers: setup ", i, " has no optimizer"));
    if (dynamic_cast<const torch::optim::LBFGS*>(setups[i].optimizer.get()) != nullptr)
      throw_error(Code::kInvalidArgument,
                  base::str("configure_optimizers: optimizer ", i, " is LBFGS, which computes the loss ",
                            "several times in an update, and a step of the trainer computes it once: use ",
                            "session.step(optimizer, closure) in a loop of your own"));
    for (const auto& group : setups[i].optimizer->param_groups())
      for (const torch::Tensor& parameter : group.params()) {
        const void* const one = parameter.unsafeGetTensorImpl();
        if (names.count(one) == 0)
          throw_error(
              Code::kInvalidArgument,
              base::str(
                  "configure_optimizers: optimizer ", i, " has a parameter of shape ", parameter.sizes(),
                  " that does not belong to the module, so no checkpoint would have it: make the optimizer "
                  "of module.parameters()"));
        if (!taken.insert(one).second)
          throw_error(Code::kInvalidArgument, base::str("configure_optimizers: the parameter ", names[one],
                                                        " is in two optimizers or groups"));
      }
  }
}

}  // namespace optimizer_set_detail

OptimizerSet::~OptimizerSet() {
  for (const auto& [setup, rates] : optimizers_) {
    auto& groups = setup.optimizer->param_groups();
    for (size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(rates[i]);
  }
  for (const auto* optimizer : all()) session_.release(*optimizer);
}

void OptimizerSet::take(std::vector<OptimizerSetup> setups, const torch::nn::Module& module) {
  optimizer_set_detail::check_setups(setups, module);
  for (OptimizerSetup& setup : setups) {
    std::vector<double> rates;
    for (auto& group : setup.optimizer->param_groups()) rates.push_back(group.options().get_lr());
    optimizers_.push_back({std::move(setup), std::move(rates)});
  }
}

std::vector<torch::optim::Optimizer*> OptimizerSet::all() const {
  std::vector<torch::optim::Optimizer*> all;
  for (const One& one : optimizers_) all.push_back(one.setup.optimizer.get());
  return all;
}

double OptimizerSet::rate_now() const {
  return optimizers_.front().setup.optimizer->param_groups().front().options().get_lr();
}

void OptimizerSet::set_rates(const ScheduleOptions& schedule, const RunPlace& place) {
  for (const auto& [setup, rates] : optimizers_) {
    auto& groups = setup.optimizer->param_groups();
    for (size_t i = 0; i < groups.size(); ++i) {
      ScheduleOptions own = schedule;
      own.lr = rates.at(i);
      groups[i].options().set_lr(setup.factor ? rates[i] * setup.factor(place)
                                              : learning_rate(own, place.step));
    }
  }
}

void OptimizerSet::set_first_rate(double first) {
  const double factor = first / optimizers_.front().rates.front();
  for (const auto& [setup, rates] : optimizers_) {
    auto& groups = setup.optimizer->param_groups();
    for (size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(rates.at(i) * factor);
  }
}

}  // namespace sluice::train
