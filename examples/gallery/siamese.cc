// A siamese network (Hadsell et al., 2006): two images of one digit come close to each other, two digits do
// not.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

struct EmbedderImpl : nn::Module {
  EmbedderImpl() {
    layers = register_module(
        "layers", nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)), nn::ReLU(),
                                 nn::MaxPool2d(2), nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1)),
                                 nn::ReLU(), nn::Flatten(), nn::Linear(32 * 4 * 4, 8)));
  }
  torch::Tensor forward(const torch::Tensor& images) { return layers->forward(images); }
  nn::Sequential layers{nullptr};
};
TORCH_MODULE(Embedder);

// The squared distance of two of a digit, and how far two digits come within a margin of 1.
torch::Tensor contrastive_loss(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& same) {
  const auto distance = F::pairwise_distance(a, b);
  return torch::where(same, distance.square(), (1 - distance).clamp_min(0).square()).mean();
}

int main(int argc, char** argv) {
  gallery::Run run("siamese", argc, argv, 400);
  if (run.device.is_xla()) sluice::init();  // Sluice

  const auto digits = run.digits();
  const auto labels = digits.train_labels;
  Embedder model;
  model->to(run.device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(2e-3));
  sluice::create_state(optimizer);  // Sluice

  // Pairs, half of them of one digit: the second image is any other, or one that follows in the order of
  // digits.
  const auto order = labels.argsort(), place = order.argsort();
  const auto partner = [&](const torch::Tensor& rows) {
    const auto near = place.index_select(0, rows) + torch::randint(1, 100, rows.sizes(), torch::kLong);
    const auto any = torch::randint(labels.size(0), rows.sizes(), torch::kLong);
    return torch::where(torch::rand(rows.sizes()) < 0.6, order.index_select(0, near % labels.size(0)), any);
  };

  for (int64_t step = 0; step < run.steps; ++step) {
    const auto one = torch::randint(labels.size(0), {64}, torch::kLong), other = partner(one);
    const auto same = labels.index_select(0, one).eq(labels.index_select(0, other)).to(run.device);
    const auto images = digits.train_images.index_select(0, torch::cat({one, other})).to(run.device);
    optimizer.zero_grad();
    const auto both = model->forward(images).chunk(2);
    const auto loss = contrastive_loss(both[0], both[1], same);
    loss.backward();
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  // The digit of the nearest image of the training set.
  torch::NoGradGuard no_grad;
  const auto known = model->forward(digits.train_images.to(run.device));
  const auto asked = model->forward(digits.test_images.to(run.device));
  const auto nearest = torch::cdist(asked, known).argmin(1);
  const auto answers = labels.to(run.device).index_select(0, nearest);
  const auto right = answers.eq(digits.test_labels.to(run.device)).to(torch::kFloat).mean();
  return run.done("nearest neighbour accuracy", right.item<double>());
}
