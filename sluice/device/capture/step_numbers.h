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
  std::vector<std::vector<uint32_t>> parameters;  // [group]: those with a gradient
  bool operator==(const OptimizerStep&) const = default;
};

// What a step would do.
struct StepNumbers {
  std::vector<double> numbers;    // in the order of the operations
  std::vector<double> options;    // all options of all groups
  std::vector<uint8_t> branches;  // which ways the options choose
};

// The step that would be taken now, by the gradients that are there.
OptimizerStep step_now(torch::optim::Optimizer& optimizer);
// Its numbers. False when they are not known: another optimizer than SGD, Adam, AdamW, RMSprop and Adagrad,
// or one without the state or the parameters that the step had.
bool step_numbers(const OptimizerStep& step, StepNumbers& all);
// Counts a step where the optimizer does.
void count_step(const OptimizerStep& step);
// What a call starts with: the storages of the parameters and of their gradients, and which of them are
// trained.
void add_state(const torch::optim::Optimizer& optimizer, std::vector<uint64_t>& state);

}  // namespace sluice::device
