// The numbers that LibTorch's optimizers pass to the operations of a step, computed without the step: from
// their options (the learning rate that a scheduler has set) and their counts of steps.
#pragma once

#include <cstdint>
#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace sluice::device {

// A step of an optimizer inside a captured function.
struct OptimizerStep {
  torch::optim::Optimizer* optimizer = nullptr;
  std::vector<std::vector<uint32_t>> parameters;  // [group]: the parameters with a gradient
  bool operator==(const OptimizerStep&) const = default;
};

// The numbers of a step, and the options that they come from.
struct StepNumbers {
  std::vector<double> numbers;    // the numbers, in the order of the operations
  std::vector<double> options;    // all options of all groups
  std::vector<uint8_t> branches;  // the branches that the options choose in step()
};

// Returns the step that the optimizer would make now, according to the gradients that exist.
OptimizerStep step_now(torch::optim::Optimizer& optimizer);
// Computes the numbers of a step. Returns false if they are not known: an optimizer other than SGD, Adam,
// AdamW, RMSprop and Adagrad, or one without the state or the parameters that the step had.
bool step_numbers(const OptimizerStep& step, StepNumbers& all);
// Counts a step as the optimizer does.
void count_step(const OptimizerStep& step);
// Appends the optimizer's state at the start of a call: the storages of the parameters and of their
// gradients, and which parameters are trained.
void add_state(const torch::optim::Optimizer& optimizer, std::vector<uint64_t>& state);

}  // namespace sluice::device
