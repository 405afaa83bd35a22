// Averages of the weights over the steps of a training, which are what its tests measure.
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
  // Above 0, and below 1: an exponential moving average (EMA), to whose old value each update leaves this
  // share. 0: the mean of all that is averaged (SWA).
  double decay = 0;
  // Of an EMA: after n updates of the average at most the share (1 + n) / (10 + n), so that a short run's
  // average is not that of its beginning.
  bool warm_up = false;
  int64_t every_steps = 1;  // how often the average is updated; 0: at the end of each epoch
  int64_t from_step = 0;    // not before so many steps,
  double from_epoch = 0;    // nor so many epochs, are over
};

// Holds averages of the module's parameters on its device, by torch.optim.swa_utils' formulas: the first
// update takes the parameters as they are. Tests, the checkpoints' model.safetensors and the module that
// fit() leaves behind have the averages once there are any; the weights that are trained then are in
// state.safetensors, and a resumed run goes on with both, bit for bit. An EMA averages buffers of
// floating-point numbers (BatchNorm's statistics) as it does parameters. With an equal mean buffers are those
// of the training, but BatchNorm's statistics are measured again with the averages, as by
// torch.optim.swa_utils.update_bn: a pass over the training data of an epoch before the averages are first
// read after they have changed. With every_steps 1 from the first step on the update of the averages is part
// of the step's program, else a program of its own; nothing waits.
class WeightAverage : public Callback {
 public:
  // Throws kInvalidArgument for numbers that make no sense.
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
  // With the averages in the module.
  void measure_statistics(Run& run);
  void take_loaded(Run& run);

  WeightAverageOptions options_;
  int64_t updates_ = 0;    // of the averages
  bool stale_ = false;     // BatchNorm's statistics are not those of the averages
  size_t parameters_ = 0;  // of the names; buffers come behind them
  std::vector<std::string> names_;
  std::vector<torch::Tensor> averages_;  // between before_reading() and after_reading() what is trained
  NamedValues loaded_;
};

}  // namespace sluice::train

SLUICE_API_END
