// Parameters that a training does not change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/train/callback.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct FreezeOptions {
  // Names of parameters, or of modules, which mean all of their parameters; * stands for any letters:
  // features.*, fc.
  std::vector<std::string> names;
  int64_t epochs = 0;  // after this number of epochs they are trained like the others; 0: never
};

// Frozen parameters need no gradient (requires_grad is false), and no optimizer changes them, not even by its
// weight decay. When their training starts the step becomes another program, once. Parameters that are frozen
// for the whole run have no optimizer's state; the others have it from the beginning. Buffers are not
// parameters: BatchNorm still updates its statistics. fit() returns the parameters as it got them.
class Freeze : public Callback {
 public:
  // Throws kInvalidArgument without names and for a negative number.
  explicit Freeze(FreezeOptions options);
  std::string name() const override { return "freeze"; }
  // Throws kInvalidArgument, with the nearest name, for a name that no parameter has, and if no parameter
  // would be left to train.
  void before_optimizers(Run& run) override;
  void begin(Run& run) override;
  void before_epoch(Run& run) override;
  void end(Run& run) override;

 private:
  void find(const torch::nn::Module& module);
  void set_frozen(bool frozen);
  FreezeOptions options_;
  std::vector<torch::Tensor> parameters_;
};

}  // namespace sluice::train

SLUICE_API_END
