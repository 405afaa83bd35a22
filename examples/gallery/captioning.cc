// Captions of varying lengths: a convolutional network sees one to three digits, and an LSTM spells them.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

using State = std::tuple<torch::Tensor, torch::Tensor>;

constexpr int64_t kHidden = 96, kLetters = 28, kLongest = 24;  // letters: 0 is the end, 1 a blank, 2 is 'a'
const std::vector<std::string> kNames = {"zero", "one", "two",   "three", "four",
                                         "five", "six", "seven", "eight", "nine"};

struct CaptionerImpl : nn::Module {
  CaptionerImpl() {
    const auto conv = [](int64_t in, int64_t out) {
      return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1));
    };
    eye = register_module("eye",
                          nn::Sequential(conv(1, 16), nn::ReLU(), nn::MaxPool2d(2), conv(16, 32), nn::ReLU(),
                                         nn::Flatten(), nn::Linear(32 * 4 * 12, kHidden), nn::Tanh()));
    letters = register_module("letters", nn::Embedding(kLetters, 16));
    speaker = register_module("speaker", nn::LSTM(nn::LSTMOptions(16 + kHidden, kHidden).batch_first(true)));
    head = register_module("head", nn::Linear(kHidden, kLetters));
  }
  // Scores of the letter after each of `text` [batch, length], and the state after the last one. The speaker
  // sees what the eye has seen, [batch, kHidden], at each letter.
  std::pair<torch::Tensor, State> speak(const torch::Tensor& seen, const torch::Tensor& text, State state) {
    const auto everywhere = seen.unsqueeze(1).expand({-1, text.size(1), -1});
    const auto [hidden, next] = speaker->forward(torch::cat({letters(text), everywhere}, 2), state);
    return {head(hidden), next};
  }
  State start(const torch::Tensor& seen) {
    return {torch::zeros_like(seen).unsqueeze(0), torch::zeros_like(seen).unsqueeze(0)};
  }
  nn::Sequential eye{nullptr};
  nn::Embedding letters{nullptr};
  nn::LSTM speaker{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(Captioner);

// Images [count, 1, 8, 24] of `digits` digits next to each other, and a caption of each.
std::pair<torch::Tensor, std::vector<torch::Tensor>> captioned(const torch::Tensor& images,
                                                               const torch::Tensor& labels, int64_t count,
                                                               int64_t digits) {
  auto canvas = torch::zeros({count, 1, 8, 24});
  std::vector<torch::Tensor> captions;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> caption;
    for (int64_t place = 0; place < digits; ++place) {
      const int64_t row = torch::randint(labels.size(0), {1}).item<int64_t>();
      canvas[i].slice(2, 8 * place, 8 * place + 8).copy_(images[row]);
      if (place > 0) caption.push_back(1);
      for (const char c : kNames[static_cast<size_t>(labels[row].item<int64_t>())])
        caption.push_back(c - 'a' + 2);
    }
    caption.push_back(0);
    captions.push_back(torch::tensor(caption));
  }
  return {canvas, captions};
}

int main(int argc, char** argv) {
  gallery::Run run("captioning", argc, argv, 400);
  if (run.device.is_xla()) sluice::init();  // Sluice

  const auto digits = run.digits();
  Captioner model;
  model->to(run.device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(3e-3));
  sluice::create_state(optimizer);  // Sluice

  for (int64_t step = 0; step < run.steps; ++step) {
    const auto [images, captions] = captioned(digits.train_images, digits.train_labels, 32, 1 + step % 3);
    const auto [padded, there] = sluice::pad_to(captions, {8, 16, kLongest});  // Sluice
    const auto text = padded.to(run.device), mask = there.to(run.device);
    optimizer.zero_grad();
    const auto seen = model->eye->forward(images.to(run.device));
    const auto before = torch::cat({torch::zeros_like(text.slice(1, 0, 1)), text.slice(1, 0, -1)}, 1);
    const auto scores = model->speak(seen, before, model->start(seen)).first;
    const auto each =
        F::cross_entropy(scores.transpose(1, 2), text, F::CrossEntropyFuncOptions().reduction(torch::kNone));
    const auto loss = (each * mask).sum() / mask.sum();
    loss.backward();
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  // Letter by letter, the likeliest one each time.
  torch::NoGradGuard no_grad;
  const auto [images, captions] = captioned(digits.test_images, digits.test_labels, 100, 3);
  const auto wanted = sluice::pad_to(captions, {kLongest}).values.to(run.device);  // Sluice
  const auto seen = model->eye->forward(images.to(run.device));
  auto state = model->start(seen);
  auto letter = torch::zeros({100, 1}, torch::kLong).to(run.device);
  auto right = torch::ones({100}, torch::kBool).to(run.device);
  for (int64_t place = 0; place < kLongest; ++place) {
    const auto [scores, next] = model->speak(seen, letter, state);
    state = next;
    letter = scores.argmax(2);
    const auto over = place == 0 ? torch::zeros_like(right) : wanted.select(1, place - 1).eq(0);
    right = right & (over | letter.squeeze(1).eq(wanted.select(1, place)));
    sluice::sync();  // Sluice
  }
  return run.done("captions without a mistake", right.to(torch::kFloat).mean().item<double>());
}
