// A Transformer from sequence to sequence that learns to sort: encoder, decoder, masks, and greedy decoding.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t kLength = 8, kNumbers = 10, kStart = kNumbers, kWidth = 32;

struct SorterImpl : nn::Module {
  SorterImpl() {
    embedding = register_module("embedding", nn::Embedding(kNumbers + 1, kWidth));
    places = register_parameter("places", 0.1 * torch::randn({kLength, 1, kWidth}));
    transformer = register_module(
        "transformer",
        nn::Transformer(nn::TransformerOptions(kWidth, 4, 2, 2).dim_feedforward(64).dropout(0.0)));
    head = register_module("head", nn::Linear(kWidth, kNumbers));
    causal = register_buffer("causal", nn::TransformerImpl::generate_square_subsequent_mask(kLength));
  }
  // Scores of the numbers of a target [batch, kLength] that is given up to each place; `from` is [batch,
  // kLength].
  torch::Tensor forward(const torch::Tensor& from, const torch::Tensor& to) {
    const auto embed = [&](const torch::Tensor& x) { return embedding(x.t()) + places; };
    return head(transformer->forward(embed(from), embed(to), {}, causal)).transpose(0, 1);
  }
  nn::Embedding embedding{nullptr};
  nn::Transformer transformer{nullptr};
  nn::Linear head{nullptr};
  torch::Tensor places, causal;
};
TORCH_MODULE(Sorter);

int main(int argc, char** argv) {
  gallery::Run run("seq2seq_transformer", argc, argv, 400);
  if (run.device.is_xla()) sluice::init();  // Sluice

  Sorter model;
  model->to(run.device);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(3e-3).weight_decay(1e-2));
  sluice::create_state(optimizer);  // Sluice
  const auto examples = [&](int64_t count) {
    const auto numbers = torch::randint(kNumbers, {count, kLength}, torch::kLong);
    return std::pair(numbers.to(run.device), std::get<0>(numbers.sort(1)).to(run.device));
  };
  const auto shifted = [](const torch::Tensor& target) {
    return torch::cat({torch::full_like(target.slice(1, 0, 1), kStart), target.slice(1, 0, -1)}, 1);
  };

  for (int64_t step = 0; step < run.steps; ++step) {
    const auto [numbers, sorted] = examples(64);
    optimizer.zero_grad();
    const auto loss =
        F::cross_entropy(model->forward(numbers, shifted(sorted)).flatten(0, 1), sorted.flatten());
    loss.backward();
    sluice::clip_grad_norm_(model->parameters(), 1.0);  // Sluice
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  // Greedy decoding. The target keeps its length, so all rounds are the same program.
  torch::NoGradGuard no_grad;
  model->eval();
  const auto [numbers, sorted] = examples(256);
  auto found = torch::full_like(sorted, kStart);
  for (int64_t place = 0; place < kLength; ++place) {
    const auto next = model->forward(numbers, shifted(found)).argmax(2);
    found = torch::where(torch::arange(kLength).to(run.device) <= place, next, found);
    sluice::sync();  // Sluice
  }
  std::cout << numbers[0].cpu().view({1, -1}) << "\n" << found[0].cpu().view({1, -1}) << "\n";
  const auto right = found.eq(sorted).all(1).to(torch::kFloat).mean();
  return run.done("sorted", right.item<double>());
}
