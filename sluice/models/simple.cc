// The small models: a multi-layer perceptron and LeNet.
#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/models/models.h"

namespace sluice::models {
namespace simple_detail {

class Mlp : public Model {
 public:
  Mlp(int64_t inputs, const std::vector<int64_t>& hidden, int64_t classes) {
    int64_t in = inputs;
    for (size_t i = 0; i < hidden.size(); ++i) {
      layers_.push_back(register_module(base::str("fc", i + 1), torch::nn::Linear(in, hidden[i])));
      in = hidden[i];
    }
    layers_.push_back(register_module("fc", torch::nn::Linear(in, classes)));
  }

  torch::Tensor forward(torch::Tensor x) override {
    x = x.flatten(1);
    for (size_t i = 0; i + 1 < layers_.size(); ++i) x = torch::relu(layers_[i](x));
    return layers_.back()(x);
  }

 private:
  std::vector<torch::nn::Linear> layers_;
};

class LeNet : public Model {
 public:
  explicit LeNet(const Shape& shape)
      : conv1_(register_module("conv1",
                               torch::nn::Conv2d(torch::nn::Conv2dOptions(shape.channels, 6, 5).padding(2)))),
        conv2_(register_module("conv2", torch::nn::Conv2d(6, 16, 5))) {
    int64_t side = (shape.image_size / 2 - 4) / 2;
    if (side < 1)
      throw_error(Code::kInvalidArgument,
                  base::str("lenet needs images of at least 12×12 pixels, not ", shape.image_size));
    fc1_ = register_module("fc1", torch::nn::Linear(16 * side * side, 120));
    fc2_ = register_module("fc2", torch::nn::Linear(120, 84));
    fc3_ = register_module("fc3", torch::nn::Linear(84, shape.classes));
  }

  torch::Tensor forward(torch::Tensor x) override {
    x = torch::max_pool2d(torch::relu(conv1_(x)), 2);
    x = torch::max_pool2d(torch::relu(conv2_(x)), 2);
    x = torch::relu(fc1_(x.flatten(1)));
    return fc3_(torch::relu(fc2_(x)));
  }

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Linear fc1_{nullptr};
  torch::nn::Linear fc2_{nullptr};
  torch::nn::Linear fc3_{nullptr};
};

}  // namespace simple_detail

ModelPtr mlp(int64_t inputs, std::vector<int64_t> hidden, int64_t classes) {
  return std::make_shared<simple_detail::Mlp>(inputs, hidden, classes);
}

ModelPtr lenet(const Shape& shape) { return std::make_shared<simple_detail::LeNet>(shape); }

}  // namespace sluice::models
