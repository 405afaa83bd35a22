// Parameters that a training leaves as they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/train/callback.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct FreezeOptions {
  // Names of parameters or of modules, whose parameters are meant, with * for any letters: features.*, fc.
  std::vector<std::string> names;
  int64_t epochs = 0;  // after so many they are trained like the others; 0: never
};

// Parameters that need no gradient (requires_grad is false) and that no optimizer changes, not even by its
// weight decay. When they are trained again the step becomes another program, once. Those that are frozen for
// the whole run have no optimizer's state; the state of the others is there from the beginning. Buffers are
// no parameters: BatchNorm's statistics go on. fit() gives the parameters back as it got them.
class Freeze : public Callback {
 public:
  // Throws kInvalidArgument without names and for a negative number.
  explicit Freeze(FreezeOptions options);
  std::string name() const override { return "freeze"; }
  // Throws kInvalidArgument, with the nearest name, for one that no parameter has, and when nothing is left
  // to be trained.
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
