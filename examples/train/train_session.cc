// Training with a session: a custom module, shards, batches on the device, logs that wait for nothing.
//
//   train_session SHARDS [--sluice-… flags]
#include <sluice/sluice.h>
#include <torch/torch.h>

#include <iostream>

namespace F = torch::nn::functional;

// A small convolutional net for 32 × 32 images.
struct Net : torch::nn::Module {
  explicit Net(int64_t classes) {
    conv1 =
        register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3).stride(2).padding(1)));
    norm1 = register_module("norm1", torch::nn::BatchNorm2d(16));
    conv2 =
        register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).stride(2).padding(1)));
    norm2 = register_module("norm2", torch::nn::BatchNorm2d(32));
    head = register_module("head", torch::nn::Linear(32, classes));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(norm1(conv1(x)));
    x = torch::relu(norm2(conv2(x)));
    return head(x.mean({2, 3}));
  }

  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::BatchNorm2d norm1{nullptr}, norm2{nullptr};
  torch::nn::Linear head{nullptr};
};

int main(int argc, char** argv) {
  auto session = sluice::start(&argc, argv);
  if (argc != 2) {
    std::cerr << "usage: train_session SHARDS\n";
    return 2;
  }
  auto model = std::make_shared<Net>(10);
  model->to(session.device());
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  auto train = sluice::data::WebDataset(argv[1]).shuffle(2'000).images("jpg;png").labels("cls").batch(
      32);  // per replica
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : session.feed(train)) {
      optimizer.zero_grad();
      auto loss = F::cross_entropy(model->forward(batch.image), batch.label);
      loss.backward();
      session.step(optimizer);
      session.log_every(20, {{"loss", loss}});
    }
  }
  session.print("done");
}
