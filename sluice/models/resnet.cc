// ResNets with torchvision's names: conv1, bn1, layer1.0.conv1, layer2.0.downsample.0, fc, …
#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/models/models.h"

namespace sluice::models {
namespace resnet_detail {

torch::nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

// The shortcut of a block that changes the shape: 1×1 convolution and normalisation.
torch::nn::Sequential projection(int64_t in, int64_t out, int64_t stride) {
  return torch::nn::Sequential(conv(in, out, 1, stride), torch::nn::BatchNorm2d(out));
}

class BasicBlockImpl : public torch::nn::Module {
 public:
  BasicBlockImpl(int64_t in, int64_t width, int64_t stride)
      : conv1_(register_module("conv1", conv(in, width, 3, stride))),
        bn1_(register_module("bn1", torch::nn::BatchNorm2d(width))),
        conv2_(register_module("conv2", conv(width, width, 3, 1))),
        bn2_(register_module("bn2", torch::nn::BatchNorm2d(width))) {
    if (stride != 1 || in != width)
      downsample_ = register_module("downsample", projection(in, width, stride));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor y = bn1_(conv1_(x)).relu_();
    y = bn2_(conv2_(y));
    return y.add_(downsample_ ? downsample_->forward(x) : x).relu_();
  }

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d bn1_;
  torch::nn::Conv2d conv2_;
  torch::nn::BatchNorm2d bn2_;
  torch::nn::Sequential downsample_{nullptr};
};

class BottleneckImpl : public torch::nn::Module {
 public:
  static constexpr int64_t kExpansion = 4;

  // The 3×3 convolution has the stride, as in torchvision.
  BottleneckImpl(int64_t in, int64_t width, int64_t stride)
      : conv1_(register_module("conv1", conv(in, width, 1, 1))),
        bn1_(register_module("bn1", torch::nn::BatchNorm2d(width))),
        conv2_(register_module("conv2", conv(width, width, 3, stride))),
        bn2_(register_module("bn2", torch::nn::BatchNorm2d(width))),
        conv3_(register_module("conv3", conv(width, width * kExpansion, 1, 1))),
        bn3_(register_module("bn3", torch::nn::BatchNorm2d(width * kExpansion))) {
    if (stride != 1 || in != width * kExpansion)
      downsample_ = register_module("downsample", projection(in, width * kExpansion, stride));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor y = bn1_(conv1_(x)).relu_();
    y = bn2_(conv2_(y)).relu_();
    y = bn3_(conv3_(y));
    return y.add_(downsample_ ? downsample_->forward(x) : x).relu_();
  }

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d bn1_;
  torch::nn::Conv2d conv2_;
  torch::nn::BatchNorm2d bn2_;
  torch::nn::Conv2d conv3_;
  torch::nn::BatchNorm2d bn3_;
  torch::nn::Sequential downsample_{nullptr};
};

TORCH_MODULE(BasicBlock);
TORCH_MODULE(Bottleneck);

class ResNet : public Model {
 public:
  explicit ResNet(const ResNetOptions& options) : small_images_(options.small_images) {
    int64_t width = options.width;
    conv1_ = register_module("conv1", small_images_ ? conv(options.channels, width, 3, options.stem_stride)
                                                    : conv(options.channels, width, 7, 2));
    bn1_ = register_module("bn1", torch::nn::BatchNorm2d(width));
    int64_t in = width;
    for (size_t i = 0; i < options.blocks.size(); ++i, width *= 2) {
      auto layer = stage(options, in, width, i == 0 ? 1 : 2, options.blocks[i]);
      layers_.push_back(register_module(base::str("layer", i + 1), layer));
      in = options.bottleneck ? width * BottleneckImpl::kExpansion : width;
    }
    fc_ = register_module("fc", torch::nn::Linear(in, options.classes));
    initialise();
  }

  torch::Tensor forward(torch::Tensor x) override {
    x = bn1_(conv1_(x)).relu_();
    if (!small_images_) x = torch::max_pool2d(x, 3, 2, 1);
    for (auto& layer : layers_) x = layer->forward(x);
    return fc_(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

 private:
  static torch::nn::Sequential stage(const ResNetOptions& options, int64_t in, int64_t width, int64_t stride,
                                     int64_t blocks) {
    torch::nn::Sequential layer;
    for (int64_t i = 0; i < blocks; ++i) {
      if (options.bottleneck) {
        layer->push_back(Bottleneck(in, width, i == 0 ? stride : 1));
        in = width * BottleneckImpl::kExpansion;
      } else {
        layer->push_back(BasicBlock(in, width, i == 0 ? stride : 1));
        in = width;
      }
    }
    return layer;
  }

  // Convolutions get normal numbers scaled by the fan out; normalisation layers and the classifier keep
  // LibTorch's initial values.
  void initialise() {
    for (auto& module : modules(/*include_self=*/false)) {
      if (auto* convolution = module->as<torch::nn::Conv2d>())
        torch::nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
    }
  }

  bool small_images_;
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  std::vector<torch::nn::Sequential> layers_;
  torch::nn::Linear fc_{nullptr};
};

ModelPtr deep(std::vector<int64_t> blocks, bool bottleneck, int64_t classes, int64_t channels) {
  ResNetOptions options;
  options.blocks = std::move(blocks);
  options.bottleneck = bottleneck;
  options.classes = classes;
  options.channels = channels;
  return resnet(options);
}

}  // namespace resnet_detail

ModelPtr resnet(const ResNetOptions& options) {
  auto positive = [](const char* what, int64_t value) {
    if (value < 1)
      throw_error(Code::kInvalidArgument, base::str("resnet: ", what, " must be at least 1, not ", value));
  };
  positive("classes", options.classes);
  positive("channels", options.channels);
  positive("width", options.width);
  positive("stem_stride", options.stem_stride);
  positive("the number of stages", static_cast<int64_t>(options.blocks.size()));
  for (int64_t blocks : options.blocks) positive("the number of blocks in a stage", blocks);
  return std::make_shared<resnet_detail::ResNet>(options);
}

ModelPtr resnet18(int64_t classes, int64_t channels) {
  return resnet_detail::deep({2, 2, 2, 2}, false, classes, channels);
}
ModelPtr resnet34(int64_t classes, int64_t channels) {
  return resnet_detail::deep({3, 4, 6, 3}, false, classes, channels);
}
ModelPtr resnet50(int64_t classes, int64_t channels) {
  return resnet_detail::deep({3, 4, 6, 3}, true, classes, channels);
}
ModelPtr resnet101(int64_t classes, int64_t channels) {
  return resnet_detail::deep({3, 4, 23, 3}, true, classes, channels);
}
ModelPtr resnet152(int64_t classes, int64_t channels) {
  return resnet_detail::deep({3, 8, 36, 3}, true, classes, channels);
}

ModelPtr cifar_resnet(int64_t depth, int64_t classes, int64_t channels) {
  if (depth < 8 || (depth - 2) % 6 != 0)
    throw_error(
        Code::kInvalidArgument,
        base::str("cifar_resnet: the depth must be 6 n + 2 (8, 14, 20, 32, 44, 56, 110), not ", depth));
  ResNetOptions options;
  int64_t blocks = (depth - 2) / 6;
  options.blocks = {blocks, blocks, blocks};
  options.width = 16;
  options.small_images = true;
  options.classes = classes;
  options.channels = channels;
  return resnet(options);
}

}  // namespace sluice::models
