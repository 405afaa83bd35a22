// The optimizers of a run, with the learning rates of their groups.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <vector>

#include "sluice/session/session.h"
#include "sluice/train/optimizers/schedule.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// Threads: the session's.
class OptimizerSet {
 public:
  explicit OptimizerSet(Session& session) : session_(session) {}
  // Restores the rates that configure_optimizers set. The next training with the same optimizer begins with
  // them, and not with the schedule's last ones.
  ~OptimizerSet();
  OptimizerSet(const OptimizerSet&) = delete;
  OptimizerSet& operator=(const OptimizerSet&) = delete;

  // Takes the setups. Throws kInvalidArgument unless each optimizer is over parameters of the module and
  // shares none with another one, or if one of them is LBFGS.
  void take(std::vector<OptimizerSetup> setups, const torch::nn::Module& module);
  std::vector<torch::optim::Optimizer*> all() const;
  torch::optim::Optimizer& at(size_t index) const { return *optimizers_[index].setup.optimizer; }
  size_t size() const { return optimizers_.size(); }
  double rate_now() const;  // of the first group of the first optimizer
  // Sets the rates of the step at this place, from the setups' factors or from the schedule.
  void set_rates(const ScheduleOptions& schedule, const RunPlace& place);
  // Sets the rate of the first group; the others stay in proportion.
  void set_first_rate(double first);

 private:
  struct One {
    OptimizerSetup setup;
    std::vector<double> rates;  // of its groups when it was made
  };
  Session& session_;
  std::vector<One> optimizers_;
};

}  // namespace sluice::train
