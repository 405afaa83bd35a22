// A language model of words: an LSTM, trained by truncated backpropagation through time, that then writes.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

using State = std::tuple<torch::Tensor, torch::Tensor>;
using Words = std::vector<std::string>;

constexpr int64_t kBatch = 16, kLength = 16, kHidden = 64;

const Words kVocabulary = {".",    "the",   "a",    "small", "old", "cat",  "dog",  "girl", "cats",
                           "dogs", "girls", "sees", "likes", "see", "like", "runs", "run",  "today"};

// `count` words of sentences in which the verb agrees with its subject.
torch::Tensor text(int64_t count) {
  std::vector<int64_t> ids;
  const auto draw = [](int64_t n) { return torch::randint(n, {1}).item<int64_t>(); };
  const auto thing = [&](bool many) {
    ids.push_back(many ? 1 : 1 + draw(2));
    if (draw(2) == 0) ids.push_back(3 + draw(2));
    ids.push_back((many ? 8 : 5) + draw(3));
  };
  while (static_cast<int64_t>(ids.size()) < count) {
    const bool many = draw(2) == 0;
    thing(many);
    const int64_t verb = draw(3);
    ids.push_back(verb == 2 ? (many ? 16 : 15) : (many ? 13 : 11) + verb);
    if (verb < 2) thing(draw(2) == 0);
    if (draw(4) == 0) ids.push_back(17);
    ids.push_back(0);
  }
  ids.resize(static_cast<size_t>(count));
  return torch::tensor(ids);
}

struct ModelImpl : nn::Module {
  ModelImpl() {
    const auto words = static_cast<int64_t>(kVocabulary.size());
    embedding = register_module("embedding", nn::Embedding(words, 32));
    lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(32, kHidden).batch_first(true)));
    head = register_module("head", nn::Linear(kHidden, words));
  }
  // Scores of the next word after each of x [batch, length], and the state after the last one.
  std::pair<torch::Tensor, State> forward(const torch::Tensor& x, const State& state) {
    const auto [hidden, next] = lstm->forward(embedding(x), state);
    return {head(hidden), next};
  }
  nn::Embedding embedding{nullptr};
  nn::LSTM lstm{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(Model);

int main(int argc, char** argv) {
  gallery::Run run("word_language_model", argc, argv, 200);
  if (run.device.is_xla()) sluice::init();  // Sluice

  Model model;
  model->to(run.device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2));
  sluice::create_state(optimizer);  // Sluice
  const auto start = [&](int64_t rows) {
    return State{torch::zeros({1, rows, kHidden}).to(run.device),
                 torch::zeros({1, rows, kHidden}).to(run.device)};
  };
  const auto loss_of = [&](const torch::Tensor& part, State& state) {
    const auto [scores, next] = model->forward(part.slice(1, 0, -1), state);
    state = {std::get<0>(next).detach(), std::get<1>(next).detach()};
    return F::cross_entropy(scores.flatten(0, 1), part.slice(1, 1).flatten());
  };

  const auto lines = text(kBatch * (run.steps * kLength + 1)).view({kBatch, -1});
  State state = start(kBatch);
  for (int64_t step = 0; step < run.steps; ++step) {
    const auto part = lines.slice(1, step * kLength, (step + 1) * kLength + 1).to(run.device);
    optimizer.zero_grad();
    const auto loss = loss_of(part, state);
    loss.backward();
    sluice::clip_grad_norm_(model->parameters(), 1.0);  // Sluice
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  torch::NoGradGuard no_grad;
  state = start(1);
  auto word = torch::zeros({1, 1}, torch::kLong);
  for (int i = 0; i < 24; ++i) {
    const auto [scores, next] = model->forward(word.to(run.device), state);
    state = next;
    word = torch::multinomial(scores.flatten().softmax(0).cpu(), 1).view({1, 1});
    std::cout << kVocabulary[static_cast<size_t>(word.item<int64_t>())] << " ";
  }
  std::cout << "\n";
  state = start(64);
  const auto loss = loss_of(text(64 * (kLength + 1)).view({64, -1}).to(run.device), state);
  return run.done("perplexity", loss.exp().item<double>());
}
