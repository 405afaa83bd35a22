// A deep convolutional GAN (Radford et al., 2015): two networks and two optimizers in each step.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;

constexpr int64_t kNoise = 16, kBatch = 64;

nn::Sequential make_generator() {
  return nn::Sequential(
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(kNoise, 64, 2).bias(false)), nn::BatchNorm2d(64),
      nn::ReLU(), nn::ConvTranspose2d(nn::ConvTranspose2dOptions(64, 32, 4).stride(2).padding(1).bias(false)),
      nn::BatchNorm2d(32), nn::ReLU(),
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(32, 1, 4).stride(2).padding(1)), nn::Tanh());
}

nn::Sequential make_discriminator() {
  const auto leaky = [] { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)); };
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 32, 4).stride(2).padding(1)), leaky(),
                        nn::Conv2d(nn::Conv2dOptions(32, 64, 4).stride(2).padding(1).bias(false)),
                        nn::BatchNorm2d(64), leaky(), nn::Conv2d(nn::Conv2dOptions(64, 1, 2)), nn::Flatten());
}

torch::Tensor loss_of(const torch::Tensor& scores, double target) {
  return torch::binary_cross_entropy_with_logits(scores, torch::full_like(scores, target));
}

// The squared maximum mean discrepancy of two sets of images (Gretton et al., 2012): 0 if they look the same.
torch::Tensor discrepancy(const torch::Tensor& a, const torch::Tensor& b) {
  const auto likeness = [](const torch::Tensor& x, const torch::Tensor& y) {
    const auto squares = x.square().sum(1).unsqueeze(1) + y.square().sum(1) - 2 * torch::mm(x, y.t());
    return (squares / -32).exp().mean();
  };
  return likeness(a, a) + likeness(b, b) - 2 * likeness(a, b);
}

int main(int argc, char** argv) {
  gallery::Run run("dcgan", argc, argv, 400);
  if (run.device.is_xla()) sluice::init();  // Sluice

  const auto digits = run.digits();
  auto generator = make_generator(), discriminator = make_discriminator();
  generator->to(run.device);
  discriminator->to(run.device);
  const auto options = torch::optim::AdamOptions(1e-3).betas({0.5, 0.999});
  torch::optim::Adam of_generator(generator->parameters(), options);
  torch::optim::Adam of_discriminator(discriminator->parameters(), options);
  sluice::create_state(of_generator);      // Sluice
  sluice::create_state(of_discriminator);  // Sluice

  for (int64_t step = 0; step < run.steps; ++step) {
    const auto rows = torch::randint(digits.train_labels.size(0), {kBatch}, torch::kLong);
    const auto real = digits.train_images.index_select(0, rows).to(run.device) * 2 - 1;
    const auto made = generator->forward(torch::randn({kBatch, kNoise, 1, 1}).to(run.device));

    of_discriminator.zero_grad();
    const auto detecting = loss_of(discriminator->forward(real), 0.9) +  // 0.9: one-sided label smoothing
                           loss_of(discriminator->forward(made.detach()), 0);
    detecting.backward();
    of_discriminator.step();

    of_generator.zero_grad();
    const auto deceiving = loss_of(discriminator->forward(made), 1);
    deceiving.backward();
    of_generator.step();
    const auto loss = (detecting + deceiving).detach();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  torch::NoGradGuard no_grad;
  generator->eval();
  const auto made = generator->forward(torch::randn({360, kNoise, 1, 1}).to(run.device)) / 2 + 0.5;
  gallery::draw(made);
  const auto real = digits.train_images.slice(0, 0, 360).to(run.device);
  return run.done("MMD2", discrepancy(made.flatten(1), real.flatten(1)).item<double>());
}
