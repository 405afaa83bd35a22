#include "sluice/models/language/language.h"

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/models/language/makers.h"

namespace sluice::models {
namespace language_detail {
namespace {

bool is_no_parameter(const LanguageOptions& options, const std::string& name) {
  if (options.type == "llama") return base::ends_with(name, ".rotary_emb.inv_freq");
  if (options.type == "gpt2")
    return base::ends_with(name, ".attn.bias") || base::ends_with(name, ".attn.masked_bias");
  return name == "roberta.embeddings.position_ids" || name == "roberta.embeddings.token_type_ids" ||
         base::starts_with(name, "roberta.pooler.");
}

bool is_copy(const LanguageOptions& options, const std::string& name) {
  if (!options.tied) return false;
  if (options.type == "roberta") return name == "lm_head.decoder.weight" || name == "lm_head.decoder.bias";
  return name == "lm_head.weight";
}

}  // namespace
}  // namespace language_detail

LanguageCache LanguageModel::make_cache(int64_t batch, int64_t capacity) const {
  const int64_t heads =
      options_.key_value_heads > 0 && options_.type == "llama" ? options_.key_value_heads : options_.heads;
  const int64_t width = options_.head_width > 0 && options_.type == "llama" ? options_.head_width
                                                                            : options_.width / options_.heads;
  const torch::TensorOptions like = parameters().front().options().requires_grad(false);
  LanguageCache cache;
  cache.capacity = capacity;
  for (int64_t layer = 0; layer < options_.layers; ++layer)
    cache.layers.push_back({torch::zeros({batch, heads, capacity, width}, like),
                            torch::zeros({batch, heads, capacity, width}, like)});
  cache.visible = torch::zeros({batch, capacity}, like.dtype(torch::kBool));
  cache.next = torch::zeros({1}, like.dtype(torch::kLong));
  cache.positions = torch::zeros({batch, 1}, like.dtype(torch::kLong));
  return cache;
}

torch::Device LanguageModel::device() const { return parameters().front().device(); }

torch::Tensor LanguageModel::classify(const LanguageInput&) {
  throw_error(Code::kFailedPrecondition,
              base::str("model ", options_.type,
                        " is not a classifier: it was made with LanguageOptions::classes = 0"));
}

torch::Tensor LanguageModel::states(const LanguageInput&, LanguageCache&) {
  throw_error(Code::kUnimplemented,
              base::str("model ", options_.type,
                        " sees what comes later, so it cannot read token by token; gpt2 and llama can"));
}

torch::Tensor LanguageModel::logits(const torch::Tensor& states) {
  const Head last = head();
  return torch::nn::functional::linear(before_head(states), last.weight, last.bias).to(torch::kFloat);
}

bool is_of_head(const std::string& name) {
  return base::starts_with(name, "lm_head.") || base::starts_with(name, "score.") ||
         base::starts_with(name, "classifier.");
}

std::string body_prefix(const LanguageOptions& options) {
  if (options.type == "gpt2") return "transformer.";
  return options.type == "llama" ? "model." : "roberta.";
}

LanguageModelPtr language_model(const LanguageOptions& options) {
  check(options);
  if (options.type == "gpt2") return language_detail::make_gpt2(options);
  if (options.type == "roberta") return language_detail::make_roberta(options);
  return language_detail::make_llama(options);
}

std::vector<std::string> own_names(const LanguageOptions& options, std::vector<std::string> names) {
  namespace detail = language_detail;
  const std::string prefix = body_prefix(options);
  const bool complete = std::any_of(names.begin(), names.end(),
                                    [&](const auto& name) { return base::starts_with(name, prefix); });
  for (std::string& name : names) {
    if (!complete && !is_of_head(name)) name = prefix + name;
    if (detail::is_no_parameter(options, name) || detail::is_copy(options, name)) name.clear();
  }
  return names;
}

std::vector<std::pair<std::string, torch::Tensor>> with_own_names(
    const LanguageOptions& options, std::vector<std::pair<std::string, torch::Tensor>> tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  names = own_names(options, std::move(names));
  std::vector<std::pair<std::string, torch::Tensor>> result;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!names[i].empty()) result.emplace_back(std::move(names[i]), std::move(tensors[i].second));
  return result;
}

}  // namespace sluice::models
