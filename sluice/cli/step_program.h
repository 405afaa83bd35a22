// Training steps as programs, recorded for devices that are not here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/estimate/slice_report.h"

namespace sluice::cli {

struct StepRecipe {
  std::string model = "resnet50";
  int64_t image_size = 0;  // pixels; 0: 224 for ResNets, 32 for models of small images
  bool bf16 = false;       // the forward pass under autocast
  bool recompute = false;  // layers are computed again in the backward pass
};

// The program of one training step of a model: forward, cross-entropy, backward, the mean of the gradients
// over the replicas, update. Opens the device. Throws sluice::Error for an unknown model.
estimate::StepText step_program(const StepRecipe& recipe, int64_t batch, int replicas);
// The program of the second step that a command records: a program of the user's own that trains in a Session
// (sluice/session/ahead_program.h has the other side). Throws kFailedPrecondition with the command's last
// words when it ends before.
estimate::StepText step_of_command(const std::vector<std::string>& command, int replicas,
                                   double deadline_seconds);
// The recipe's images, with 0 replaced by the model's own size.
int64_t image_size_of(const StepRecipe& recipe);

}  // namespace sluice::cli
