// The training steps that `sluice bench step` times: a model, its batch, its loss and its optimizer.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/models/models.h"

namespace sluice::cli {

struct BenchCase {
  std::string name;
  bool adam = false;    // else SGD with momentum 0.9
  bool images = false;  // the input may be channels_last
  std::function<models::ModelPtr()> model;
  std::function<torch::Tensor(int64_t batch)> input;  // on the CPU
  int64_t classes = 10;
  bool gives_loss = false;     // the model gives its loss, and needs no target
  bool only_products = false;  // next to nothing but products with the weights: they bound the step
};

struct BenchSizes {
  int64_t image_size = 32;  // pixels
  int64_t length = 256;     // tokens in a row, of language models
  bool mlp_of_rows = true;  // mlp is MNIST's, whatever the image size; else as `sluice train` makes it
};

// By name; throws sluice::Error (kNotFound) with the nearest name.
// `recompute`: see models::TransformerOptions; kInvalidArgument where a model has no such layers.
BenchCase bench_case(const std::string& name, const BenchSizes& sizes, bool recompute = false);
// Of a case's model.
torch::Tensor bench_loss(const BenchCase& bench, models::Model& model, const torch::Tensor& input,
                         const torch::Tensor& target);
std::vector<std::string> bench_case_names();

// One training step at a time, on one device or on all replicas of xla:0.
class BenchStep {
 public:
  // `batch`: of one replica. Several replicas have batches of their own and average their gradients. `bf16`:
  // the forward pass is under autocast.
  BenchStep(const BenchCase& bench, int64_t batch, torch::Device device, torch::MemoryFormat format,
            bool bf16 = false);
  // Forward, cross-entropy, backward, update. On xla this records; the caller cuts.
  void record();
  // The same; gives the loss, which nothing here keeps.
  torch::Tensor run();
  // The last loss that was recorded, the mean over the replicas; waits.
  double loss() const;

 private:
  BenchCase bench_;
  models::ModelPtr model_;
  torch::Tensor input_, target_, loss_;
  bool bf16_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

// The matrix products of a step of such a case alone, on operands that are there: for each weight the layer's
// result, the weight's gradient and, but for the first layer, the input's.
class BenchProducts {
 public:
  BenchProducts(const BenchCase& bench, int64_t batch, torch::Device device);
  // On xla this records; the caller cuts.
  void record();

 private:
  std::vector<torch::Tensor> weights_, inputs_, gradients_, results_;
};

}  // namespace sluice::cli
