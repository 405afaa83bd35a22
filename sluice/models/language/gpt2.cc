// GPT-2: LayerNorm before each part, a table of positions, one projection for queries, keys and values.
#include <cmath>

#include "sluice/models/language/decoder.h"
#include "sluice/models/language/makers.h"
#include "sluice/models/layer.h"

namespace sluice::models::language_detail {
namespace {

// A linear layer whose weight is [inputs, outputs].
class Conv1d : public torch::nn::Module {
 public:
  Conv1d(int64_t inputs, int64_t outputs, double deviation) {
    weight_ = register_parameter("weight", torch::randn({inputs, outputs}) * deviation);
    bias_ = register_parameter("bias", torch::zeros({outputs}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::nn::functional::linear(x, weight_.t(), bias_);
  }

 private:
  torch::Tensor weight_, bias_;
};

// Returns the deviation of weights whose products the layers add up: with more layers it is smaller.
double residual_deviation(const LanguageOptions& options) {
  return options.initial_deviation / std::sqrt(2.0 * static_cast<double>(options.layers));
}

class Gpt2Attention : public torch::nn::Module {
 public:
  Gpt2Attention(const LanguageOptions& options, int64_t layer)
      : heads_(options.heads), attention_dropout_(options.attention_dropout), dropout_(options.dropout) {
    if (options.scaled_attention)
      scale_ = 1 / std::sqrt(static_cast<double>(options.width) / static_cast<double>(heads_));
    if (options.scaled_by_layer) scale_ /= static_cast<double>(layer + 1);
    in_ = register_module(
        "c_attn", std::make_shared<Conv1d>(options.width, 3 * options.width, options.initial_deviation));
    out_ = register_module(
        "c_proj", std::make_shared<Conv1d>(options.width, options.width, residual_deviation(options)));
  }
  torch::Tensor forward(const torch::Tensor& x, const Seen& seen) {
    const std::vector<torch::Tensor> parts = in_->forward(x).chunk(3, -1);
    const torch::Tensor together =
        attention(split_heads(parts[0], heads_), split_heads(parts[1], heads_), split_heads(parts[2], heads_),
                  seen, is_training() ? attention_dropout_ : 0, scale_);
    return torch::dropout(out_->forward(together), dropout_, is_training());
  }

 private:
  int64_t heads_;
  double attention_dropout_, dropout_, scale_ = 1;
  std::shared_ptr<Conv1d> in_, out_;
};

class Gpt2Feedforward : public torch::nn::Module {
 public:
  explicit Gpt2Feedforward(const LanguageOptions& options)
      : activation_(activation(options.activation)), dropout_(options.dropout) {
    const int64_t inner = options.feedforward > 0 ? options.feedforward : 4 * options.width;
    up_ = register_module("c_fc", std::make_shared<Conv1d>(options.width, inner, options.initial_deviation));
    down_ = register_module("c_proj",
                            std::make_shared<Conv1d>(inner, options.width, residual_deviation(options)));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::dropout(down_->forward(activation_(up_->forward(x))), dropout_, is_training());
  }

 private:
  Activation activation_;
  double dropout_;
  std::shared_ptr<Conv1d> up_, down_;
};

class Gpt2Layer : public torch::nn::Module {
 public:
  Gpt2Layer(const LanguageOptions& options, int64_t layer) {
    before_attention_ = register_module("ln_1", layer_norm(options.width, options.norm_epsilon));
    attention_ = register_module("attn", std::make_shared<Gpt2Attention>(options, layer));
    before_feedforward_ = register_module("ln_2", layer_norm(options.width, options.norm_epsilon));
    feedforward_ = register_module("mlp", std::make_shared<Gpt2Feedforward>(options));
  }
  torch::Tensor forward(torch::Tensor x, const Seen& seen) {
    x = x + attention_->forward(before_attention_(x), seen);
    return x + feedforward_->forward(before_feedforward_(x));
  }

 private:
  torch::nn::LayerNorm before_attention_{nullptr}, before_feedforward_{nullptr};
  std::shared_ptr<Gpt2Attention> attention_;
  std::shared_ptr<Gpt2Feedforward> feedforward_;
};

// The model without its head.
class Gpt2Body : public torch::nn::Module {
 public:
  explicit Gpt2Body(const LanguageOptions& options)
      : dropout_(options.embedding_dropout), recompute_(options.recompute) {
    const double deviation = options.initial_deviation;
    words_ = register_module("wte", table(options.vocabulary, options.width, -1, deviation));
    positions_ = register_module("wpe", table(options.positions, options.width, -1, deviation));
    torch::nn::ModuleList list;
    for (int64_t i = 0; i < options.layers; ++i) {
      layers_.push_back(std::make_shared<Gpt2Layer>(options, i));
      list->push_back(layers_.back());
    }
    register_module("h", list);
    norm_ = register_module("ln_f", layer_norm(options.width, options.norm_epsilon));
  }
  torch::Tensor forward(const LanguageInput& input, Seen visible, LanguageCache* cache) {
    torch::Tensor x = words_(input.ids);
    x = x + (input.positions.defined() ? positions_(input.positions)
                                       : positions_->weight.narrow(0, 0, input.ids.size(1)));
    x = torch::dropout(x, dropout_, is_training());
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (cache != nullptr) visible.memory = &cache->layers[i];
      const auto one = [block = layers_[i], visible](const torch::Tensor& h) {
        return block->forward(h, visible);
      };
      x = layer(recompute_ && cache == nullptr, one, x);
    }
    return norm_(x);
  }
  const torch::Tensor& words() const { return words_->weight; }

 private:
  double dropout_;
  bool recompute_;
  torch::nn::Embedding words_{nullptr}, positions_{nullptr};
  std::vector<std::shared_ptr<Gpt2Layer>> layers_;
  torch::nn::LayerNorm norm_{nullptr};
};

}  // namespace

LanguageModelPtr make_gpt2(const LanguageOptions& options) {
  return std::make_shared<Decoder<Gpt2Body>>(options, "transformer", options.positions);
}

}  // namespace sluice::models::language_detail
