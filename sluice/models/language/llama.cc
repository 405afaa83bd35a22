// Llama: RMSNorm before each part, rotary positions, keys and values that serve several heads, a feedforward
// with a gate.
#include "sluice/models/language/decoder.h"
#include "sluice/models/language/makers.h"
#include "sluice/models/language/rope.h"
#include "sluice/models/layer.h"

namespace sluice::models::language_detail {
namespace {

class RmsNorm : public torch::nn::Module {
 public:
  RmsNorm(int64_t width, double epsilon) : epsilon_(epsilon) {
    weight_ = register_parameter("weight", torch::ones({width}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor wide = x.to(torch::kFloat);
    const torch::Tensor scale = torch::rsqrt(wide.square().mean(-1, true) + epsilon_);
    return weight_ * (wide * scale).to(x.scalar_type());
  }

 private:
  double epsilon_;
  torch::Tensor weight_;
};

class LlamaAttention : public torch::nn::Module {
 public:
  explicit LlamaAttention(const LanguageOptions& options)
      : heads_(options.heads),
        key_value_heads_(options.key_value_heads > 0 ? options.key_value_heads : options.heads),
        dropout_(options.attention_dropout) {
    const int64_t head = options.head_width > 0 ? options.head_width : options.width / options.heads;
    const auto make = [&](const char* name, int64_t inputs, int64_t outputs) {
      return register_module(name,
                             linear(inputs, outputs, options.attention_bias, options.initial_deviation));
    };
    query_ = make("q_proj", options.width, heads_ * head);
    key_ = make("k_proj", options.width, key_value_heads_ * head);
    value_ = make("v_proj", options.width, key_value_heads_ * head);
    out_ = make("o_proj", heads_ * head, options.width);
  }
  torch::Tensor forward(const torch::Tensor& x, const Rope::Angles& angles, const Seen& seen) {
    const torch::Tensor query = rotate(split_heads(query_(x), heads_), angles);
    const torch::Tensor key = rotate(split_heads(key_(x), key_value_heads_), angles);
    const torch::Tensor value = split_heads(value_(x), key_value_heads_);
    return out_(attention(query, key, value, seen, is_training() ? dropout_ : 0));
  }

 private:
  int64_t heads_, key_value_heads_;
  double dropout_;
  torch::nn::Linear query_{nullptr}, key_{nullptr}, value_{nullptr}, out_{nullptr};
};

class LlamaFeedforward : public torch::nn::Module {
 public:
  explicit LlamaFeedforward(const LanguageOptions& options) : activation_(activation(options.activation)) {
    const int64_t inner = options.feedforward > 0 ? options.feedforward : 4 * options.width;
    const auto make = [&](const char* name, int64_t inputs, int64_t outputs) {
      return register_module(name,
                             linear(inputs, outputs, options.feedforward_bias, options.initial_deviation));
    };
    gate_ = make("gate_proj", options.width, inner);
    up_ = make("up_proj", options.width, inner);
    down_ = make("down_proj", inner, options.width);
  }
  torch::Tensor forward(const torch::Tensor& x) { return down_(activation_(gate_(x)) * up_(x)); }

 private:
  Activation activation_;
  torch::nn::Linear gate_{nullptr}, up_{nullptr}, down_{nullptr};
};

class LlamaLayer : public torch::nn::Module {
 public:
  explicit LlamaLayer(const LanguageOptions& options) {
    attention_ = register_module("self_attn", std::make_shared<LlamaAttention>(options));
    feedforward_ = register_module("mlp", std::make_shared<LlamaFeedforward>(options));
    const auto norm = [&] { return std::make_shared<RmsNorm>(options.width, options.norm_epsilon); };
    before_attention_ = register_module("input_layernorm", norm());
    before_feedforward_ = register_module("post_attention_layernorm", norm());
  }
  torch::Tensor forward(torch::Tensor x, const Rope::Angles& angles, const Seen& seen) {
    x = x + attention_->forward(before_attention_->forward(x), angles, seen);
    return x + feedforward_->forward(before_feedforward_->forward(x));
  }

 private:
  std::shared_ptr<LlamaAttention> attention_;
  std::shared_ptr<LlamaFeedforward> feedforward_;
  std::shared_ptr<RmsNorm> before_attention_, before_feedforward_;
};

// The model without its head.
class LlamaBody : public torch::nn::Module {
 public:
  explicit LlamaBody(const LanguageOptions& options) : rope_(options), recompute_(options.recompute) {
    words_ = register_module(
        "embed_tokens", table(options.vocabulary, options.width, options.padding, options.initial_deviation));
    torch::nn::ModuleList list;
    for (int64_t i = 0; i < options.layers; ++i) {
      layers_.push_back(std::make_shared<LlamaLayer>(options));
      list->push_back(layers_.back());
    }
    register_module("layers", list);
    norm_ = register_module("norm", std::make_shared<RmsNorm>(options.width, options.norm_epsilon));
  }
  torch::Tensor forward(const LanguageInput& input, Seen visible, LanguageCache* cache) {
    torch::Tensor x = words_(input.ids);
    const Rope::Angles angles = cache != nullptr ? rope_.angles(input, *cache) : rope_.angles(input);
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (cache != nullptr) visible.memory = &cache->layers[i];
      const auto one = [block = layers_[i], angles, visible](const torch::Tensor& h) {
        return block->forward(h, angles, visible);
      };
      x = layer(recompute_ && cache == nullptr, one, x);
    }
    return norm_->forward(x);
  }
  const torch::Tensor& words() const { return words_->weight; }

 private:
  Rope rope_;
  bool recompute_;
  torch::nn::Embedding words_{nullptr};
  std::vector<std::shared_ptr<LlamaLayer>> layers_;
  std::shared_ptr<RmsNorm> norm_;
};

}  // namespace

LanguageModelPtr make_llama(const LanguageOptions& options) {
  return std::make_shared<Decoder<LlamaBody>>(options, "model", /*longest=*/0);
}

}  // namespace sluice::models::language_detail
