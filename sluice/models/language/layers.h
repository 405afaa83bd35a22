// What the language models have in common.
#pragma once

#include <torch/torch.h>

#include <optional>
#include <string>

#include "sluice/models/language/language.h"

namespace sluice::models::language_detail {

using Activation = torch::Tensor (*)(const torch::Tensor&);
// Of known_activations().
Activation activation(const std::string& name);

// A linear layer and a table with weights as transformers draw them. A table's row of the padding token is 0
// and stays so.
torch::nn::Linear linear(int64_t inputs, int64_t outputs, bool bias, double deviation);
torch::nn::Embedding table(int64_t rows, int64_t width, int64_t padding, double deviation);
torch::nn::LayerNorm layer_norm(int64_t width, double epsilon);

// Throws sluice::Error unless the input is as LanguageInput says. longest: 0 for any length.
void check_input(const LanguageOptions& options, const LanguageInput& input, int64_t longest);

// `states` [batch, length, width] → [batch, width], of the last token that is not filled up.
torch::Tensor last_states(const LanguageOptions& options, const LanguageInput& input,
                          const torch::Tensor& states);
// Throws for several documents in a sequence.
void check_classified(const LanguageOptions& options, const LanguageInput& input);
// Throws kFailedPrecondition: a classifier has no head of words.
[[noreturn]] void refuse_head(const LanguageOptions& options);

// Which keys a query sees.
struct Seen {
  std::optional<torch::Tensor> mask;       // bool [batch, 1, queries, keys]
  bool causal = false;                     // without a mask: what is before it, and itself
  LanguageCache::Layer* memory = nullptr;  // where keys and values are written, in front without a slot
  torch::Tensor slot = {};  // int64 [1]: where the one key goes; the queries then see all of the memory
};
// A place that is filled up sees what the others see, as in transformers; of a causal model and among
// documents also itself: it then has a softmax, and still nobody looks at it.
Seen seen(const LanguageInput& input, bool causal);

// Of a model that reads on from a cache: checks the input, moves the cache on, and gives it positions.
LanguageInput input_behind(const LanguageOptions& options, const LanguageInput& input, LanguageCache& cache);
// What its queries see; the layer's memory is yet to be set. `input` is input_behind's.
Seen seen_behind(const LanguageInput& input, const LanguageCache& cache);

// [batch, heads, length, head width] of [batch, length, width].
torch::Tensor split_heads(const torch::Tensor& x, int64_t heads);
// [batch, length, width] again, of softmax(query · keyᵀ · scale) · value. With fewer heads of keys and values
// than of queries, each serves several. scale: 1 / √ head width unless it is given.
torch::Tensor attention(const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
                        const Seen& seen, double dropout, std::optional<double> scale = {});

}  // namespace sluice::models::language_detail
