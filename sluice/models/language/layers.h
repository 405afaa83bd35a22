// The parts that the language models share.
#pragma once

#include <torch/torch.h>

#include <optional>
#include <string>

#include "sluice/models/language/language.h"

namespace sluice::models::language_detail {

using Activation = torch::Tensor (*)(const torch::Tensor&);
// Returns an activation of known_activations() by its name.
Activation activation(const std::string& name);

// Make a linear layer and a table with weights drawn as in transformers. A table's row of the padding token
// is 0 and stays 0.
torch::nn::Linear linear(int64_t inputs, int64_t outputs, bool bias, double deviation);
torch::nn::Embedding table(int64_t rows, int64_t width, int64_t padding, double deviation);
torch::nn::LayerNorm layer_norm(int64_t width, double epsilon);

// Throws sluice::Error unless the input has the form that LanguageInput describes. longest: 0 for any length.
void check_input(const LanguageOptions& options, const LanguageInput& input, int64_t longest);

// Returns the state of the last token before the padding, [batch, width] of `states` [batch, length, width].
torch::Tensor last_states(const LanguageOptions& options, const LanguageInput& input,
                          const torch::Tensor& states);
// Throws if a sequence has several documents.
void check_classified(const LanguageOptions& options, const LanguageInput& input);
// Throws kFailedPrecondition, because a classifier has no head of words.
[[noreturn]] void refuse_head(const LanguageOptions& options);

// The keys that a query sees.
struct Seen {
  std::optional<torch::Tensor> mask;       // bool [batch, 1, queries, keys]
  bool causal = false;                     // without a mask: a query sees the places before it, and itself
  LanguageCache::Layer* memory = nullptr;  // the cache; without a slot it is filled from the front
  torch::Tensor slot = {};  // int64 [1]: where the one key goes; the queries then see the whole memory
};
// A place in the padding sees what the others see, as in transformers. In a causal model, or with documents,
// it also sees itself, so that its softmax has a term; no other place sees it.
Seen seen(const LanguageInput& input, bool causal);

// Checks the input of a model that continues from a cache, advances the cache, and adds positions to the
// input.
LanguageInput input_behind(const LanguageOptions& options, const LanguageInput& input, LanguageCache& cache);
// Returns what the queries of input_behind's `input` see; the caller must set the layer's memory.
Seen seen_behind(const LanguageInput& input, const LanguageCache& cache);

// Returns [batch, heads, length, head width] of [batch, length, width].
torch::Tensor split_heads(const torch::Tensor& x, int64_t heads);
// Returns softmax(query · keyᵀ · scale) · value as [batch, length, width]. If keys and values have fewer
// heads than the queries, each of their heads serves several. scale: 1 / √ head width unless it is given.
torch::Tensor attention(const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
                        const Seen& seen, double dropout, std::optional<double> scale = {});

}  // namespace sluice::models::language_detail
