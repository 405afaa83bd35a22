// The steps of a training: the functions that a program writes for its batches.
//
//   sluice::train::Steps steps;
//   steps.training_step = [&](sluice::Batch& batch) -> sluice::train::StepOutput {
//     // The error has one value for each row.
//     auto error = (model->forward(batch.columns[0]) - batch.columns[1]).square().mean(1);
//     return {.loss = error, .logs = {{"rmse", error.sqrt()}}};
//   };
//   steps.validation_step = steps.training_step;
//   sluice::train::Trainer(options, {train, test}).fit(model, steps);
//
// The functions are called on the session's thread and only record: their results are read later. They must
// record the same operations for batches of the same shapes, or each batch becomes a separate program.
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

// The result of a step. Each value is a floating-point tensor of one element, or of one element for each row
// of the batch ([N] or [N, …]); then its mean leaves out padding and is the mean over all samples of all
// replicas.
struct StepOutput {
  torch::Tensor loss = {};
  // The weight of this step's values in the means over batches and replicas, such as the number of tokens: a
  // tensor of one element, or of one for each row, of any real type. The loss is then the mean, by these
  // weights, over all replicas and all batches of an update (accumulate). Undefined: each row counts the
  // same.
  torch::Tensor weight = {};
  // More numbers: lines, tables and curves show them under these names, which must be the same in every step.
  NamedValues logs = {};
  // For training: as `logs`, but the mean over the samples of the epoch, reported at its end.
  NamedValues epoch_logs = {};
  // For validation with Steps::metrics: see metrics::Collection::update.
  torch::Tensor output = {}, target = {};
};

// The updates of a step whose optimizers take turns.
class Updates {
 public:
  // Computes the gradients of `loss` (as in StepOutput), averages them over all replicas, clips them as the
  // options say, and makes the step of the optimizer with this number in Steps::configure_optimizers. Drops
  // the gradients that the loss gives to parameters of other optimizers. Later computations use the new
  // values.
  virtual void update(size_t optimizer, const torch::Tensor& loss) = 0;

 protected:
  ~Updates() = default;
};

// The position of a run, for its learning rates.
struct RunPlace {
  int64_t step = 0;   // the next step, from 0
  double epoch = 0;   // the same in epochs
  int64_t steps = 0;  // of the whole run
  double epochs = 0;
};

struct OptimizerSetup {
  // An optimizer over parameters of the trained module, with any groups. No two setups share a parameter.
  std::shared_ptr<torch::optim::Optimizer> optimizer;
  // The factor for the learning rate of each group before a step. None: the options' schedule.
  std::function<double(const RunPlace&)> factor = {};
};

// The value of a test that measures the weights: logdir/best has the best ones.
struct Monitor {
  std::string name = "loss";
  bool higher_is_better = false;
  // Whether `value` is better than `than` by more than `by`. NaN is never better.
  bool is_better(double value, double than, double by = 0) const {
    return higher_is_better ? value > than + by : value < than - by;
  }
};

struct Steps {
  // Set one of these two. With updating_step, a step does not combine several batches (accumulate), and the
  // loss that it returns is only logged.
  std::function<StepOutput(Batch&)> training_step;
  std::function<StepOutput(Batch&, Updates&)> updating_step;
  // None: no test. Its values are averaged over all samples of the set. The model is in eval mode and
  // gradients are off.
  std::function<StepOutput(Batch&)> validation_step;
  std::vector<metrics::Metric> metrics;  // of `output` and `target` of the validation
  // Adds values that are computed from a test's values, such as a perplexity.
  std::function<void(metrics::Values&)> derive;
  // The tensors that Trainer::predict writes for each row: [N, …], by their names.
  std::function<NamedValues(Batch&)> predict_step;
  // Called once the module is on its device. None: the optimizer that the options name, over all parameters.
  std::function<std::vector<OptimizerSetup>()> configure_optimizers;
  Monitor monitor;
  // More files of each checkpoint, such as a configuration: names and contents.
  std::vector<std::pair<std::string, std::string>> files = {};
};

}  // namespace sluice::train

SLUICE_API_END
