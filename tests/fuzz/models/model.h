// A random small model, and how it lies over a random mesh.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sluice/mesh/layout.h"
#include "sluice/mesh/mesh.h"
#include "sluice/mesh/rules.h"

namespace sluice::fuzz {

// One step of a model: a name, and a number that means what the step makes of it.
struct Block {
  std::string name;
  int64_t number = 0;
};

struct Plan {
  uint64_t seed = 0;
  int64_t number = 0;
  std::string mesh = {};
  int64_t batch = 8, length = 4, width = 8;
  std::vector<Block> blocks = {};
  bool adam = false;
  bool by_rules = false;    // parameters lie as rules by name say; else as layouts of their own
  bool batch_first = true;  // the input lies as a batch; else over any axes

  // "data=2,fsdp=2: batch 8, length 4, width 8: embedding, linear 16, …; AdamW"
  std::string text() const;
};

// Returns the plan of (seed, number), which depends on these alone.
Plan make_plan(uint64_t seed, int64_t number);

// Tokens of [batch, length] to scores of [batch, length, kClasses].
constexpr int64_t kWords = 24, kClasses = 8;

struct ModelImpl : torch::nn::Module {
  explicit ModelImpl(const Plan& plan);
  torch::Tensor forward(const torch::Tensor& tokens);

 private:
  void add(size_t index, const Block& block, const Plan& plan);

  torch::nn::Embedding embedding_{nullptr};
  torch::nn::Linear head_{nullptr};
  std::vector<std::function<torch::Tensor(const torch::Tensor&)>> steps_;
};
TORCH_MODULE(Model);

// Returns the layouts of the parameters, or the rules that give them, on the plan's mesh: the same for one
// plan and model.
std::vector<Layout> layouts_of(const Plan& plan, const ModelImpl& model);
std::vector<ShardRule> rules_of(const Plan& plan, const ModelImpl& model);
// Returns the layout of tokens and labels.
Layout layout_of_input(const Plan& plan);

}  // namespace sluice::fuzz
