// The training steps that `sluice bench step` times: a model, its batch, its loss and its optimizer.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/models/models.h"

namespace sluice::bench {

struct Case {
  std::string name;
  bool adam = false;    // else SGD with momentum 0.9
  bool images = false;  // the input may be channels_last
  std::function<models::ModelPtr()> model;
  std::function<torch::Tensor(int64_t batch)> input;  // on the CPU
  int64_t classes = 10;
  bool gives_loss = false;     // the model returns its loss and needs no target
  bool of_tokens = false;      // the input has rows of Sizes::length tokens
  bool only_products = false;  // nearly only products with the weights, which bound the step's time
};

struct Sizes {
  int64_t image_size = 32;  // pixels
  int64_t length = 256;     // tokens in a row, of language models
  bool mlp_of_rows = true;  // mlp for MNIST's size, not for image_size as in `sluice train`
};

// Returns the case with this name. Errors, thrown as sluice::Error: kNotFound, naming the nearest case;
// kInvalidArgument for `recompute` (models::TransformerOptions) with a model that has no such layers.
Case find_case(const std::string& name, const Sizes& sizes, bool recompute = false);
// Returns the case's optimizer of the model's parameters.
std::unique_ptr<torch::optim::Optimizer> case_optimizer(const Case& bench, const models::Model& model);
// Returns the loss of the case's model for one batch.
torch::Tensor case_loss(const Case& bench, models::Model& model, const torch::Tensor& input,
                        const torch::Tensor& target);
std::vector<std::string> case_names();

// Runs one training step at a time, on one device or on all replicas of xla:0.
class Step {
 public:
  // `batch` is one replica's batch size. Each replica has its own batch; the gradients are averaged. `bf16`:
  // the forward pass runs under autocast.
  Step(const Case& bench, int64_t batch, torch::Device device, torch::MemoryFormat format, bool bf16 = false);
  // Runs forward, cross-entropy, backward and update. On xla this only records; the caller calls sync().
  void record();
  // Does the same and returns the loss, to which this object keeps no reference.
  torch::Tensor run();
  // Returns the last recorded loss, as the mean over the replicas; waits for it.
  double loss() const;

 private:
  Case bench_;
  models::ModelPtr model_;
  torch::Tensor input_, target_, loss_;
  bool bf16_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

// Runs only the matrix products of such a case's step, on operands that exist already: for each weight the
// layer's result, the weight's gradient and, except in the first layer, the input's gradient.
class Products {
 public:
  Products(const Case& bench, int64_t batch, torch::Device device);
  // On xla this only records; the caller calls sync().
  void record();

 private:
  std::vector<torch::Tensor> weights_, inputs_, gradients_, results_;
};

}  // namespace sluice::bench
