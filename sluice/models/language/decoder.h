// The part of a decoder above its body, the same for all decoders: the head of words or of classes, and the
// cache. Internal to this room.
#pragma once

#include <memory>

#include "sluice/models/language/layers.h"

namespace sluice::models::language_detail {

// A Body is a module that is constructed from LanguageOptions. Its forward(input, what is seen, cache or
// null) returns states [batch, length, width], and words() returns the table of words [vocabulary, width].
template <typename Body>
class Decoder : public LanguageModel {
 public:
  // `body` is its name in Hugging Face's files; `longest` the tokens of a sequence, 0 for any number.
  Decoder(const LanguageOptions& options, const char* body, int64_t longest)
      : LanguageModel(options), longest_(longest) {
    body_ = register_module(body, std::make_shared<Body>(options));
    const auto make = [&](const char* name, int64_t outputs) {
      return register_module(name, linear(options.width, outputs, false, options.initial_deviation));
    };
    if (options.classes > 0)
      score_ = make("score", options.classes);
    else if (!options.tied)
      head_ = make("lm_head", options.vocabulary);
  }
  torch::Tensor states(const LanguageInput& input) override {
    check_input(options(), input, longest_);
    return body_->forward(input, seen(input, /*causal=*/true), nullptr);
  }
  torch::Tensor states(const LanguageInput& input, LanguageCache& cache) override {
    const LanguageInput placed = input_behind(options(), input, cache);
    const torch::Tensor states = body_->forward(placed, seen_behind(placed, cache), &cache);
    cache.next.add_(input.ids.size(1));
    return states;
  }
  torch::Tensor classify(const LanguageInput& input) override {
    if (!score_) return LanguageModel::classify(input);
    check_classified(options(), input);
    return score_(last_states(options(), input, states(input))).to(torch::kFloat);
  }
  Head head() const override {
    if (score_) refuse_head(options());
    return {head_ ? head_->weight : body_->words(), {}};
  }

 private:
  int64_t longest_;
  std::shared_ptr<Body> body_;
  torch::nn::Linear head_{nullptr}, score_{nullptr};
};

}  // namespace sluice::models::language_detail
