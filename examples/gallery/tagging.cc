// Tags each number of sequences of varying lengths as a peak, a valley or a slope, by a bidirectional GRU.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t kNumbers = 16, kTags = 3;

struct TaggerImpl : nn::Module {
  TaggerImpl() {
    embedding = register_module("embedding", nn::Embedding(kNumbers, 16));
    gru = register_module("gru", nn::GRU(nn::GRUOptions(16, 32).bidirectional(true).batch_first(true)));
    head = register_module("head", nn::Linear(64, kTags));
  }
  // Scores [batch, length, kTags] of numbers [batch, length]; the mask is true where a number is.
  torch::Tensor forward(const torch::Tensor& numbers, const torch::Tensor& mask) {
    const auto [hidden, last] = sluice::forward_padded(gru, {embedding(numbers), mask});  // Sluice
    return head(hidden);
  }
  nn::Embedding embedding{nullptr};
  nn::GRU gru{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(Tagger);

// 1 where a number is above both of its neighbours, 2 where it is below both; a neighbour outside counts as
// 0.
torch::Tensor tags_of(const torch::Tensor& numbers) {
  const auto padded = F::pad(numbers, F::PadFuncOptions({1, 1}));
  const auto left = padded.slice(0, 0, -2), right = padded.slice(0, 2);
  const auto peak = (numbers > left) & (numbers > right), valley = (numbers < left) & (numbers < right);
  return peak.to(torch::kLong) + 2 * valley.to(torch::kLong);
}

struct Batch {
  torch::Tensor numbers, mask, tags;
};

// `count` sequences of up to `longest` numbers, on the device.
Batch sequences(int64_t count, int64_t longest, torch::Device device) {
  std::vector<torch::Tensor> numbers, tags;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t length = 1 + torch::randint(longest, {1}).item<int64_t>();
    numbers.push_back(torch::randint(kNumbers, {length}, torch::kLong));
    tags.push_back(tags_of(numbers.back()));
  }
  const auto [values, mask] = sluice::pad_to(numbers, {8, 16, 24});          // Sluice
  const auto [wanted, same_mask] = sluice::pad_to(tags, {8, 16, 24}, -100);  // Sluice
  return {values.to(device), mask.to(device), wanted.to(device)};
}

int main(int argc, char** argv) {
  gallery::Run run("tagging", argc, argv, 150);
  if (run.device.is_xla()) sluice::init();  // Sluice

  Tagger model;
  model->to(run.device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2));
  sluice::create_state(optimizer);  // Sluice

  for (int64_t step = 0; step < run.steps; ++step) {
    const auto batch = sequences(32, 8 * (1 + step % 3), run.device);  // batches of similar lengths
    optimizer.zero_grad();
    const auto scores = model->forward(batch.numbers, batch.mask);
    const auto loss = F::cross_entropy(scores.flatten(0, 1), batch.tags.flatten());  // -100 is ignored
    loss.backward();
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  torch::NoGradGuard no_grad;
  const auto test = sequences(200, 24, run.device);
  const auto right = model->forward(test.numbers, test.mask).argmax(2).eq(test.tags).logical_and(test.mask);
  return run.done("accuracy", right.sum().item<double>() / test.mask.sum().item<double>());
}
