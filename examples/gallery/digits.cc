// A convolutional network that reads handwritten digits, fed by LibTorch's own data loader.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

struct NetImpl : nn::Module {
  NetImpl() {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)));
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1)));
    fc1 = register_module("fc1", nn::Linear(32 * 2 * 2, 64));
    fc2 = register_module("fc2", nn::Linear(64, 10));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1->forward(x), 2));
    x = torch::relu(torch::max_pool2d(conv2->forward(x), 2));
    x = torch::relu(fc1->forward(x.flatten(1)));
    return torch::log_softmax(fc2->forward(x), 1);
  }
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr};
};
TORCH_MODULE(Net);

class DigitSet : public torch::data::Dataset<DigitSet> {
 public:
  DigitSet(torch::Tensor images, torch::Tensor labels)
      : images_(std::move(images)), labels_(std::move(labels)) {}
  torch::data::Example<> get(size_t index) override {
    const auto row = static_cast<int64_t>(index);
    return {images_[row], labels_[row]};
  }
  std::optional<size_t> size() const override { return static_cast<size_t>(images_.size(0)); }

 private:
  torch::Tensor images_, labels_;
};

int main(int argc, char** argv) {
  gallery::Run run("digits", argc, argv, 300);
  if (run.device.is_xla()) sluice::init();  // Sluice

  const auto digits = run.digits();
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      DigitSet(digits.train_images, digits.train_labels).map(torch::data::transforms::Stack<>()),
      torch::data::DataLoaderOptions(64).drop_last(true));

  Net model;
  model->to(run.device);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  sluice::create_state(optimizer);  // Sluice

  int64_t step = 0;
  while (step < run.steps) {
    for (auto& batch : *loader) {
      const auto images = batch.data.to(run.device), labels = batch.target.to(run.device);
      optimizer.zero_grad();
      const auto loss = F::nll_loss(model->forward(images), labels);
      loss.backward();
      optimizer.step();
      sluice::sync();  // Sluice
      run.log(step, loss);
      if (++step == run.steps) break;
    }
  }

  torch::NoGradGuard no_grad;
  model->eval();
  const auto answers = model->forward(digits.test_images.to(run.device)).argmax(1);
  const auto right = answers.eq(digits.test_labels.to(run.device)).to(torch::kFloat).mean();
  return run.done("accuracy", right.item<double>());
}
