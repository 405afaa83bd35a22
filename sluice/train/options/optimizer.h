// The options of the weights' update.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/train/choices.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct OptimizerSection {
  OptimizerKind optimizer = OptimizerKind::kSgd;
  double lr = 0.1;
  double momentum = 0.9;      // of SGD and RMSprop
  bool nesterov = false;      // of SGD
  std::vector<double> betas;  // of Adam and AdamW; empty: 0.9, 0.999
  double eps = 0;             // for all but SGD; 0: the optimizer's own
  double weight_decay = 1e-4;
  bool no_decay = false;  // for parameters with fewer than two dimensions: biases and the parameters of norms
  double label_smoothing = 0;
  double clip_norm = 0;         // of all gradients together; 0: no limit
  double clip_value = 0;        // of each element of a gradient; 0: no limit
  OnNan on_nan = OnNan::kStop;  // for an update's loss or gradients
};

}  // namespace sluice::train

SLUICE_API_END
