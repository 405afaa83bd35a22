// Averages of the weights over the steps of a training; its tests measure the averages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/train/callback.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct WeightAverageOptions {
  // Above 0 and below 1: an exponential moving average (EMA); each update keeps this share of the old value.
  // 0: an equal mean of all updates (SWA).
  double decay = 0;
  // For an EMA: after n updates of the average the share is at most (1 + n) / (10 + n), so that the average
  // of a short run is not dominated by its beginning.
  bool warm_up = false;
  int64_t every_steps = 1;  // how often the average is updated; 0: at the end of each epoch
  int64_t from_step = 0;    // averaging begins after at least this number of steps
  double from_epoch = 0;    // and at least this number of epochs
};

// Holds averages of the module's parameters on its device, by torch.optim.swa_utils' formulas: the first
// update copies the parameters. Once there are averages, the tests, the checkpoints' model.safetensors and
// the module that fit() returns have them; the trained weights are then in state.safetensors, and a resumed
// run continues with both, bit for bit. An EMA averages floating-point buffers (BatchNorm's statistics) like
// parameters. With an equal mean, buffers keep their values from the training, but BatchNorm's statistics are
// measured again with the averages, as by torch.optim.swa_utils.update_bn: a pass over the training data of
// an epoch, before the averages are first read after a change. If every_steps is 1 from the first step on,
// the update of the averages is part of the step's program, else a program of its own; nothing waits.
class WeightAverage : public Callback {
 public:
  // Throws kInvalidArgument for senseless numbers.
  explicit WeightAverage(WeightAverageOptions options);
  std::string name() const override { return "weight average"; }
  void begin(Run& run) override;
  void within_step(Run& run) override;
  void after_step(Run& run) override;
  void after_epoch(Run& run) override;
  void before_reading(Run& run) override;
  void after_reading(Run& run) override { exchange(run); }
  void end(Run& run) override;
  std::string state() const override;
  NamedValues tensors() const override;
  void load(const std::string& state) override;
  void load_tensors(const NamedValues& tensors) override { loaded_ = tensors; }

 private:
  bool is_within_step() const;
  bool has_begun(const RunPlace& place, int64_t steps) const;
  double share_of_new() const;
  void update(Run& run);
  // Swaps the averages with the module's parameters and buffers, once there are averages.
  void exchange(Run& run);
  // Measures BatchNorm's statistics; the averages are in the module.
  void measure_statistics(Run& run);
  void take_loaded(Run& run);

  WeightAverageOptions options_;
  int64_t updates_ = 0;    // of the averages
  bool stale_ = false;     // whether BatchNorm's statistics do not belong to the averages
  size_t parameters_ = 0;  // the number of parameters' names; buffers' names follow
  std::vector<std::string> names_;
  std::vector<torch::Tensor> averages_;  // between before_reading() and after_reading(): the trained weights
  NamedValues loaded_;
};

}  // namespace sluice::train

SLUICE_API_END
