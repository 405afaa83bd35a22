// What a training does with a batch: the part of it that whoever trains writes.
//
//   sluice::train::Steps steps;
//   steps.training_step = [&](sluice::Batch& batch) -> sluice::train::StepOutput {
//     auto error = (model->forward(batch.columns[0]) - batch.columns[1]).square().mean(1);  // one for each
//     row return {.loss = error, .logs = {{"rmse", error.sqrt()}}};
//   };
//   steps.validation_step = steps.training_step;
//   sluice::train::Trainer(options, {train, test}).fit(model, steps);
//
// The functions are called on the session's thread and only record: what they return is read later. They must
// record the same operations for batches of the same shapes, or each batch makes a program of its own.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/metrics/metrics.h"
#include "sluice/session/session.h"

SLUICE_API_BEGIN

namespace sluice::train {

using NamedValues = std::vector<std::pair<std::string, torch::Tensor>>;

// What a step gives. Each value is a floating-point tensor of one element, or of one for each row of the
// batch ([N] or [N, …]): then padding is left out of its mean, which is that over all samples of all
// replicas.
struct StepOutput {
  torch::Tensor loss = {};
  // How much the values of this step count in the means over batches and replicas, such as the number of
  // tokens: a tensor of one element, or of one for each row, of any type of real numbers. The loss is then
  // the mean over all replicas and all batches of an update (accumulate), by these weights. Undefined: each
  // row counts as much.
  torch::Tensor weight = {};
  // Numbers beside the loss: lines, tables and curves have them under these names, which must be the same in
  // every step.
  NamedValues logs = {};
  // In training: the same, but the mean over the samples of the epoch, told at its end.
  NamedValues epoch_logs = {};
  // In validation, for Steps::metrics: see metrics::Collection::update.
  torch::Tensor output = {}, target = {};
};

// The updates of a step whose optimizers take turns.
class Updates {
 public:
  // The gradients of `loss` (as StepOutput's), their mean over all replicas, clipped as the options say, and
  // the step of the optimizer with this number among those of Steps::configure_optimizers. Gradients that the
  // loss gives to parameters of other optimizers are let go. What is computed afterwards sees the new values.
  virtual void update(size_t optimizer, const torch::Tensor& loss) = 0;

 protected:
  ~Updates() = default;
};

// Where a run stands, for its learning rates.
struct RunPlace {
  int64_t step = 0;   // that comes, from 0
  double epoch = 0;   // the same in epochs
  int64_t steps = 0;  // of the whole run
  double epochs = 0;
};

struct OptimizerSetup {
  // Over parameters of the module that is trained, with any groups. No two setups have a parameter in common.
  std::shared_ptr<torch::optim::Optimizer> optimizer;
  // What the learning rate of each group is multiplied by before a step. None: as the options' schedule says.
  std::function<double(const RunPlace&)> factor = {};
};

// Which value of a test says how good the weights are: logdir/best has the best ones.
struct Monitor {
  std::string name = "loss";
  bool higher_is_better = false;
  // By more than `by`. NaN is never better.
  bool is_better(double value, double than, double by = 0) const {
    return higher_is_better ? value > than + by : value < than - by;
  }
};

struct Steps {
  // One of these two. With updating_step a step is not put together from several batches (accumulate), and
  // the loss that it returns is only logged.
  std::function<StepOutput(Batch&)> training_step;
  std::function<StepOutput(Batch&, Updates&)> updating_step;
  // None: no test. Its values are averaged over all samples of the set. The model is in eval mode and
  // gradients are off.
  std::function<StepOutput(Batch&)> validation_step;
  std::vector<metrics::Metric> metrics;  // of `output` and `target` of the validation
  // Adds to the values of a test what is computed from them, such as a perplexity.
  std::function<void(metrics::Values&)> derive;
  // What Trainer::predict writes of each row: tensors of [N, …] by their names.
  std::function<NamedValues(Batch&)> predict_step;
  // Called once the module is on its device. None: the optimizer that the options name, over all parameters.
  std::function<std::vector<OptimizerSetup>()> configure_optimizers;
  Monitor monitor;
  // Files that each checkpoint has beside the weights, such as a configuration: names and contents.
  std::vector<std::pair<std::string, std::string>> files = {};
};

}  // namespace sluice::train

SLUICE_API_END
