// RoBERTa with the head of masked language modelling: LayerNorm after each part, and a table of positions
// that are counted from the padding token + 1.
#include "sluice/models/language/layers.h"
#include "sluice/models/language/makers.h"
#include "sluice/models/layer.h"

namespace sluice::models::language_detail {
namespace {

// A linear layer, dropout, and LayerNorm of the sum with the block's input.
class RobertaOutput : public torch::nn::Module {
 public:
  RobertaOutput(int64_t inputs, const LanguageOptions& options) : dropout_(options.dropout) {
    dense_ = register_module("dense", linear(inputs, options.width, true, options.initial_deviation));
    norm_ = register_module("LayerNorm", layer_norm(options.width, options.norm_epsilon));
  }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& before) {
    return norm_(torch::dropout(dense_(x), dropout_, is_training()) + before);
  }

 private:
  double dropout_;
  torch::nn::Linear dense_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};

class RobertaSelf : public torch::nn::Module {
 public:
  explicit RobertaSelf(const LanguageOptions& options)
      : heads_(options.heads), dropout_(options.attention_dropout) {
    const auto make = [&](const char* name) {
      return register_module(name, linear(options.width, options.width, true, options.initial_deviation));
    };
    query_ = make("query");
    key_ = make("key");
    value_ = make("value");
  }
  torch::Tensor forward(const torch::Tensor& x, const Seen& seen) {
    return attention(split_heads(query_(x), heads_), split_heads(key_(x), heads_),
                     split_heads(value_(x), heads_), seen, is_training() ? dropout_ : 0);
  }

 private:
  int64_t heads_;
  double dropout_;
  torch::nn::Linear query_{nullptr}, key_{nullptr}, value_{nullptr};
};

class RobertaAttention : public torch::nn::Module {
 public:
  explicit RobertaAttention(const LanguageOptions& options) {
    self_ = register_module("self", std::make_shared<RobertaSelf>(options));
    output_ = register_module("output", std::make_shared<RobertaOutput>(options.width, options));
  }
  torch::Tensor forward(const torch::Tensor& x, const Seen& seen) {
    return output_->forward(self_->forward(x, seen), x);
  }

 private:
  std::shared_ptr<RobertaSelf> self_;
  std::shared_ptr<RobertaOutput> output_;
};

class RobertaIntermediate : public torch::nn::Module {
 public:
  RobertaIntermediate(int64_t inner, const LanguageOptions& options)
      : activation_(activation(options.activation)) {
    dense_ = register_module("dense", linear(options.width, inner, true, options.initial_deviation));
  }
  torch::Tensor forward(const torch::Tensor& x) { return activation_(dense_(x)); }

 private:
  Activation activation_;
  torch::nn::Linear dense_{nullptr};
};

class RobertaLayer : public torch::nn::Module {
 public:
  explicit RobertaLayer(const LanguageOptions& options) {
    const int64_t inner = options.feedforward > 0 ? options.feedforward : 4 * options.width;
    attention_ = register_module("attention", std::make_shared<RobertaAttention>(options));
    intermediate_ = register_module("intermediate", std::make_shared<RobertaIntermediate>(inner, options));
    output_ = register_module("output", std::make_shared<RobertaOutput>(inner, options));
  }
  torch::Tensor forward(const torch::Tensor& x, const Seen& seen) {
    const torch::Tensor attended = attention_->forward(x, seen);
    return output_->forward(intermediate_->forward(attended), attended);
  }

 private:
  std::shared_ptr<RobertaAttention> attention_;
  std::shared_ptr<RobertaIntermediate> intermediate_;
  std::shared_ptr<RobertaOutput> output_;
};

class RobertaEmbeddings : public torch::nn::Module {
 public:
  explicit RobertaEmbeddings(const LanguageOptions& options)
      : padding_(options.padding), dropout_(options.embedding_dropout) {
    const auto make = [&](const char* name, int64_t rows, int64_t padding) {
      return register_module(name, table(rows, options.width, padding, options.initial_deviation));
    };
    words_ = make("word_embeddings", options.vocabulary, padding_);
    positions_ = make("position_embeddings", options.positions, padding_);
    types_ = make("token_type_embeddings", options.token_types, -1);
    norm_ = register_module("LayerNorm", layer_norm(options.width, options.norm_epsilon));
  }
  torch::Tensor forward(const LanguageInput& input) {
    const torch::Tensor x = words_(input.ids) + types_->weight[0] + positions_(position(input));
    return torch::dropout(norm_(x), dropout_, is_training());
  }
  const torch::Tensor& words() const { return words_->weight; }

 private:
  // Returns the rows of the table of positions; padding has the padding token's row.
  torch::Tensor position(const LanguageInput& input) const {
    if (input.positions.defined()) return (input.positions + 1) * input.documents.ne(0) + padding_;
    const torch::Tensor real = input.ids.ne(padding_).to(torch::kLong);
    return torch::cumsum(real, 1) * real + padding_;
  }

  int64_t padding_;
  double dropout_;
  torch::nn::Embedding words_{nullptr}, positions_{nullptr}, types_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};

class RobertaEncoder : public torch::nn::Module {
 public:
  explicit RobertaEncoder(const LanguageOptions& options) : recompute_(options.recompute) {
    torch::nn::ModuleList list;
    for (int64_t i = 0; i < options.layers; ++i) {
      layers_.push_back(std::make_shared<RobertaLayer>(options));
      list->push_back(layers_.back());
    }
    register_module("layer", list);
  }
  torch::Tensor forward(torch::Tensor x, const Seen& seen) {
    for (const auto& block : layers_)
      x = layer(
          recompute_, [block, seen](const torch::Tensor& h) { return block->forward(h, seen); }, x);
    return x;
  }

 private:
  bool recompute_;
  std::vector<std::shared_ptr<RobertaLayer>> layers_;
};

// The model without its head.
class RobertaBody : public torch::nn::Module {
 public:
  explicit RobertaBody(const LanguageOptions& options) {
    embeddings_ = register_module("embeddings", std::make_shared<RobertaEmbeddings>(options));
    encoder_ = register_module("encoder", std::make_shared<RobertaEncoder>(options));
  }
  torch::Tensor forward(const LanguageInput& input) {
    return encoder_->forward(embeddings_->forward(input), seen(input, /*causal=*/false));
  }
  const torch::Tensor& words() const { return embeddings_->words(); }

 private:
  std::shared_ptr<RobertaEmbeddings> embeddings_;
  std::shared_ptr<RobertaEncoder> encoder_;
};

class RobertaHead : public torch::nn::Module {
 public:
  explicit RobertaHead(const LanguageOptions& options) {
    dense_ = register_module("dense", linear(options.width, options.width, true, options.initial_deviation));
    norm_ = register_module("layer_norm", layer_norm(options.width, options.norm_epsilon));
    if (options.tied) {
      bias_ = register_parameter("bias", torch::zeros({options.vocabulary}));
      return;
    }
    decoder_ = register_module("decoder",
                               linear(options.width, options.vocabulary, true, options.initial_deviation));
    register_buffer("bias", torch::zeros({options.vocabulary}));  // in transformers' files, but unused
  }
  torch::Tensor before(const torch::Tensor& x) { return norm_(torch::gelu(dense_(x))); }
  LanguageModel::Head last(const torch::Tensor& words) const {
    if (decoder_) return {decoder_->weight, decoder_->bias};
    return {words, bias_};
  }

 private:
  torch::nn::Linear dense_{nullptr}, decoder_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
  torch::Tensor bias_;
};

// The classifier's head, which reads the first token.
class RobertaClassifier : public torch::nn::Module {
 public:
  explicit RobertaClassifier(const LanguageOptions& options)
      : dropout_(options.classifier_dropout < 0 ? options.dropout : options.classifier_dropout) {
    dense_ = register_module("dense", linear(options.width, options.width, true, options.initial_deviation));
    out_ =
        register_module("out_proj", linear(options.width, options.classes, true, options.initial_deviation));
  }
  torch::Tensor forward(const torch::Tensor& states) {
    const torch::Tensor first = torch::dropout(states.select(1, 0), dropout_, is_training());
    return out_(torch::dropout(torch::tanh(dense_(first)), dropout_, is_training()));
  }

 private:
  double dropout_;
  torch::nn::Linear dense_{nullptr}, out_{nullptr};
};

class Roberta : public LanguageModel {
 public:
  explicit Roberta(const LanguageOptions& options) : LanguageModel(options) {
    body_ = register_module("roberta", std::make_shared<RobertaBody>(options));
    if (options.classes > 0)
      classifier_ = register_module("classifier", std::make_shared<RobertaClassifier>(options));
    else
      head_ = register_module("lm_head", std::make_shared<RobertaHead>(options));
  }
  torch::Tensor states(const LanguageInput& input) override {
    check_input(options(), input, options().positions - options().padding - 1);
    return body_->forward(input);
  }
  torch::Tensor classify(const LanguageInput& input) override {
    if (!classifier_) return LanguageModel::classify(input);
    check_classified(options(), input);
    return classifier_->forward(states(input)).to(torch::kFloat);
  }
  torch::Tensor before_head(const torch::Tensor& states) override {
    if (!head_) refuse_head(options());
    return head_->before(states);
  }
  Head head() const override {
    if (!head_) refuse_head(options());
    return head_->last(body_->words());
  }

 private:
  std::shared_ptr<RobertaBody> body_;
  std::shared_ptr<RobertaHead> head_;
  std::shared_ptr<RobertaClassifier> classifier_;
};

}  // namespace

LanguageModelPtr make_roberta(const LanguageOptions& options) { return std::make_shared<Roberta>(options); }

}  // namespace sluice::models::language_detail
