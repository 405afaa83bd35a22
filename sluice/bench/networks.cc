#include "sluice/bench/networks.h"

#include <vector>

namespace sluice::bench {
namespace networks_detail {

using models::ModelPtr;
namespace functional = torch::nn::functional;

class NextTokenLstm : public models::Model {
 public:
  explicit NextTokenLstm(const LstmOptions& options) {
    words_ = register_module("words", torch::nn::Embedding(options.vocabulary, options.width));
    lstm_ = register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(options.width, options.width)
                                                        .num_layers(options.layers)
                                                        .batch_first(true)));
    head_ = register_module("head", torch::nn::Linear(options.width, options.vocabulary));
  }
  torch::Tensor forward(torch::Tensor ids) override {
    const torch::Tensor states = std::get<0>(lstm_(words_(ids.slice(1, 0, -1))));
    return functional::cross_entropy(head_(states.flatten(0, 1)), ids.slice(1, 1).flatten());
  }

 private:
  torch::nn::Embedding words_{nullptr};
  torch::nn::LSTM lstm_{nullptr};
  torch::nn::Linear head_{nullptr};
};

constexpr int64_t kNoise = 100, kWidth = 64;  // the sizes of DCGAN's paper

torch::nn::Sequential generator() {
  torch::nn::Sequential net;
  const std::vector<int64_t> widths = {kNoise, 8 * kWidth, 4 * kWidth, 2 * kWidth, kWidth, 3};
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    net->push_back(torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(widths[i], widths[i + 1], 4)
                                                  .stride(i == 0 ? 1 : 2)
                                                  .padding(i == 0 ? 0 : 1)
                                                  .bias(false)));
    if (i + 2 == widths.size()) break;
    net->push_back(torch::nn::BatchNorm2d(widths[i + 1]));
    net->push_back(torch::nn::ReLU());
  }
  net->push_back(torch::nn::Tanh());
  return net;
}

torch::nn::Sequential discriminator() {
  torch::nn::Sequential net;
  const std::vector<int64_t> widths = {3, kWidth, 2 * kWidth, 4 * kWidth, 8 * kWidth, 1};
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const bool last = i + 2 == widths.size();
    net->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(widths[i], widths[i + 1], 4)
                                         .stride(last ? 1 : 2)
                                         .padding(last ? 0 : 1)
                                         .bias(false)));
    if (last) break;
    if (i > 0) net->push_back(torch::nn::BatchNorm2d(widths[i + 1]));
    net->push_back(torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)));
  }
  return net;
}

class Dcgan : public models::Model {
 public:
  Dcgan() {
    generator_ = register_module("generator", generator());
    discriminator_ = register_module("discriminator", discriminator());
  }
  torch::Tensor forward(torch::Tensor real) override {
    const torch::Tensor made =
        generator_->forward(torch::randn({real.size(0), kNoise, 1, 1}, real.options()));
    const torch::Tensor told_apart = loss(real, true) + loss(made.detach(), false);
    train_discriminator(false);
    const torch::Tensor passed = loss(made, true);
    train_discriminator(true);
    return told_apart + passed;
  }

 private:
  // The discriminator's loss for images that are to be taken for real ones, or for generated ones.
  torch::Tensor loss(const torch::Tensor& images, bool as_real) {
    const torch::Tensor logits = discriminator_->forward(images).flatten();
    return functional::binary_cross_entropy_with_logits(logits,
                                                        torch::full_like(logits, as_real ? 1.0 : 0.0));
  }
  // What is computed while this is off gives the discriminator's parameters no gradient.
  void train_discriminator(bool on) {
    for (torch::Tensor& parameter : discriminator_->parameters()) parameter.set_requires_grad(on);
  }

  torch::nn::Sequential generator_{nullptr}, discriminator_{nullptr};
};

}  // namespace networks_detail

models::ModelPtr next_token_lstm(const LstmOptions& options) {
  return std::make_shared<networks_detail::NextTokenLstm>(options);
}

models::ModelPtr dcgan() { return std::make_shared<networks_detail::Dcgan>(); }

}  // namespace sluice::bench
