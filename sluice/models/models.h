// The models that Sluice ships. Every one is a plain torch::nn::Module, made on the CPU in f32 with fresh
// weights (drawn from LibTorch's CPU generator: torch::manual_seed makes them repeatable); move it with
// model->to(device). Parameters and buffers have the names that torchvision (ResNets) and torch.nn
// (Transformer) give them, so that weights can be exchanged in both directions.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/mesh/rules.h"

SLUICE_API_BEGIN
namespace sluice::models {

// A module with one input tensor (a batch) and one output tensor (logits, batch × classes, f32 unless under
// autocast).
class Model : public torch::nn::Module, public LaidOutModel {
 public:
  virtual torch::Tensor forward(torch::Tensor input) = 0;
  // How its parameters lie over a mesh. The transformer has rules; the other models have small products.
  std::vector<ShardRule> shard_rules() const override { return {}; }
};
using ModelPtr = std::shared_ptr<Model>;

// The properties of the data that create() needs. Sizes in pixels; images are square.
struct Shape {
  int64_t classes = 10;
  int64_t channels = 3;
  int64_t image_size = 32;
  bool recompute = false;  // see TransformerOptions
};

struct ResNetOptions {
  std::vector<int64_t> blocks = {2, 2, 2, 2};  // residual blocks in each stage; a stage doubles the channels
  bool bottleneck = false;                     // 1×1, 3×3, 1×1 with four times the output channels
  int64_t width = 64;                          // channels of the first stage
  bool small_images = false;  // first convolution 3×3 without pooling, instead of 7×7/2 and max-pool/2
  int64_t stem_stride = 1;    // stride of the first convolution when small_images
  int64_t classes = 1000;
  int64_t channels = 3;
};

// The input is batch × channels × height × width. Throws sluice::Error for invalid options.
ModelPtr resnet(const ResNetOptions& options);
// torchvision's ResNets.
ModelPtr resnet18(int64_t classes = 1000, int64_t channels = 3);
ModelPtr resnet34(int64_t classes = 1000, int64_t channels = 3);
ModelPtr resnet50(int64_t classes = 1000, int64_t channels = 3);
ModelPtr resnet101(int64_t classes = 1000, int64_t channels = 3);
ModelPtr resnet152(int64_t classes = 1000, int64_t channels = 3);
// The ResNets for small images: depth = 6 n + 2 (8, 14, 20, 32, 44, 56, 110), with stages of 16, 32 and 64
// channels.
ModelPtr cifar_resnet(int64_t depth, int64_t classes = 10, int64_t channels = 3);

// Linear layers with ReLU between them; the input is flattened to batch × inputs.
ModelPtr mlp(int64_t inputs, std::vector<int64_t> hidden = {1024, 1024}, int64_t classes = 10);
// Two 5×5 convolutions with max-pooling, and three linear layers.
ModelPtr lenet(const Shape& shape = {10, 1, 28});

struct TransformerOptions {
  int64_t classes = 10;
  int64_t layers = 4;
  int64_t width = 128;  // a multiple of heads
  int64_t heads = 4;
  int64_t feedforward = 512;
  double dropout = 0.1;
  // Tokens: input is int64 batch × length, values below vocabulary, length at most max_length. Positions that
  // hold `padding` are masked (-1: no padding). A vocabulary of 0 means images, cut into patches.
  int64_t vocabulary = 0;
  int64_t max_length = 256;
  int64_t padding = -1;
  // Images: input is batch × channels × image_size × image_size.
  int64_t channels = 3;
  int64_t image_size = 32;
  int64_t patch = 4;
  // Keeps only the input of each layer for the backward pass, which computes the layer again
  // (sluice::checkpoint): less memory, a third more work.
  bool recompute = false;
};
// A Transformer encoder; the mean over the positions goes through one linear layer.
ModelPtr transformer(const TransformerOptions& options = {});

// Makes a model by its name ("resnet50", "cifar_resnet20", "mlp", "lenet", "transformer", …) for the data's
// shape. Throws sluice::Error: kNotFound that proposes the nearest known name; kInvalidArgument for
// `recompute` with a model other than the transformer: BatchNorm's statistics would be updated twice, and
// small models have nothing to save.
ModelPtr create(const std::string& name, const Shape& shape);
// Returns all names that create() accepts, sorted.
std::vector<std::string> names();

}  // namespace sluice::models
SLUICE_API_END
