// A variational autoencoder (Kingma and Welling, 2013) of handwritten digits; draws digits that it makes.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t kPixels = 64, kHidden = 128, kCode = 8;

struct VaeImpl : nn::Module {
  VaeImpl() {
    encoder = register_module("encoder", nn::Linear(kPixels, kHidden));
    mean = register_module("mean", nn::Linear(kHidden, kCode));
    log_variance = register_module("log_variance", nn::Linear(kHidden, kCode));
    hidden = register_module("hidden", nn::Linear(kCode, kHidden));
    pixels = register_module("pixels", nn::Linear(kHidden, kPixels));
  }
  std::pair<torch::Tensor, torch::Tensor> encode(const torch::Tensor& x) {
    const auto h = torch::relu(encoder(x));
    return {mean(h), log_variance(h)};
  }
  // Scores of the pixels; their sigmoid is the image.
  torch::Tensor decode(const torch::Tensor& code) { return pixels(torch::relu(hidden(code))); }

  nn::Linear encoder{nullptr}, mean{nullptr}, log_variance{nullptr}, hidden{nullptr}, pixels{nullptr};
};
TORCH_MODULE(Vae);

// The negative evidence lower bound in nats, a mean over the images x [batch, kPixels]. The noise is [batch,
// kCode].
torch::Tensor loss_of(Vae& model, const torch::Tensor& x, const torch::Tensor& noise) {
  const auto [mean, log_variance] = model->encode(x);
  const auto scores = model->decode(mean + noise * (0.5 * log_variance).exp());
  const auto reconstruction = F::binary_cross_entropy_with_logits(
      scores, x, F::BinaryCrossEntropyWithLogitsFuncOptions().reduction(torch::kSum));
  const auto divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum();
  return (reconstruction + divergence) / x.size(0);
}

int main(int argc, char** argv) {
  gallery::Run run("vae", argc, argv, 600);
  if (run.device.is_xla()) sluice::init();  // Sluice

  const auto digits = run.digits();
  Vae model;
  model->to(run.device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(2e-3));
  sluice::create_state(optimizer);  // Sluice

  for (int64_t step = 0; step < run.steps; ++step) {
    const auto rows = torch::randint(digits.train_labels.size(0), {128}, torch::kLong);
    const auto images = digits.train_images.index_select(0, rows).flatten(1).to(run.device);
    const auto noise = torch::randn({128, kCode}).to(run.device);
    optimizer.zero_grad();
    const auto loss = loss_of(model, images, noise);
    loss.backward();
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  torch::NoGradGuard no_grad;
  const auto code = torch::randn({8, kCode}).to(run.device);
  gallery::draw(model->decode(code).sigmoid().view({8, 1, 8, 8}));
  const auto test = digits.test_images.flatten(1).to(run.device);
  const auto noise = torch::randn({test.size(0), kCode}).to(run.device);
  return run.done("test nats", loss_of(model, test, noise).item<double>());
}
