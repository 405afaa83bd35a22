// Records training steps as programs for devices that are not here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/bench/cases.h"
#include "sluice/estimate/slice_report.h"
#include "sluice/mesh/mesh.h"

namespace sluice::cli {

struct StepRecipe {
  std::string model = "resnet50";
  int64_t image_size = 0;  // pixels; 0: 224 for ResNets, 32 for models of small images
  int64_t length = 256;    // tokens in a row, of language models
  bool bf16 = false;       // the forward pass runs under autocast
  bool recompute = false;  // layers are recomputed in the backward pass
};

// The devices that a step is recorded for.
struct Recorded {
  int replicas = 1;
  std::string kind = {};  // PJRT's name: "TPU v3"; "": no TPU
  // The mesh over which they share one model; empty: the replicas each have all of it, or as a command says.
  Mesh mesh = {};
};

// Returns the program of one training step of a model: forward, cross-entropy, backward, the mean of the
// gradients over the replicas, update. `batch` samples for each device that has rows of its own. Opens the
// device. Throws sluice::Error for an unknown model.
estimate::StepText step_program(const StepRecipe& recipe, int64_t batch, const Recorded& devices);
// Returns the program of the second step that a command records, and those before it: the user's own program,
// which trains in a Session (the other side is sluice/session/ahead/ahead_program.h). Throws
// kFailedPrecondition with the command's last words if it ends before.
estimate::StepText step_of_command(const std::vector<std::string>& command, const Recorded& devices,
                                   double deadline_seconds);
bench::Sizes sizes_of(const StepRecipe& recipe);
// Returns the recipe's image size, with 0 replaced by the model's own size.
int64_t image_size_of(const StepRecipe& recipe);

}  // namespace sluice::cli
