#include "sluice/models/language/layers.h"

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::models::language_detail {
namespace {

torch::Tensor exact_gelu(const torch::Tensor& x) { return torch::gelu(x); }
torch::Tensor tanh_gelu(const torch::Tensor& x) { return torch::gelu(x, "tanh"); }
torch::Tensor quick_gelu(const torch::Tensor& x) { return x * torch::sigmoid(1.702 * x); }
torch::Tensor relu(const torch::Tensor& x) { return torch::relu(x); }
torch::Tensor silu(const torch::Tensor& x) { return torch::silu(x); }
torch::Tensor tanh(const torch::Tensor& x) { return torch::tanh(x); }

// Attends from one query to the whole memory, which includes its own key. Heads that share keys are treated
// as several queries, so keys and values are not repeated for them.
torch::Tensor of_memory(const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
                        const Seen& seen, std::optional<double> scale) {
  const torch::Tensor& keys =
      seen.memory->keys.index_copy_(2, seen.slot, key.to(seen.memory->keys.scalar_type()));
  const torch::Tensor& values =
      seen.memory->values.index_copy_(2, seen.slot, value.to(seen.memory->values.scalar_type()));
  const int64_t batch = key.size(0), heads = key.size(1), width = key.size(3);
  const torch::Tensor together = at::scaled_dot_product_attention(
      query.reshape({batch, heads, query.size(1) / heads, width}), keys.to(query.scalar_type()),
      values.to(query.scalar_type()), seen.mask, 0, false, scale);
  return together.reshape({batch, 1, query.size(1) * width});
}

}  // namespace

Activation activation(const std::string& name) {
  if (name == "gelu" || name == "gelu_python") return exact_gelu;
  if (name == "quick_gelu") return quick_gelu;
  if (name == "relu") return relu;
  if (name == "silu" || name == "swish") return silu;
  if (name == "tanh") return tanh;
  return tanh_gelu;  // gelu_new, gelu_fast, gelu_pytorch_tanh
}

torch::nn::Linear linear(int64_t inputs, int64_t outputs, bool bias, double deviation) {
  torch::nn::Linear layer(torch::nn::LinearOptions(inputs, outputs).bias(bias));
  torch::nn::init::normal_(layer->weight, 0, deviation);
  if (bias) torch::nn::init::zeros_(layer->bias);
  return layer;
}

torch::nn::Embedding table(int64_t rows, int64_t width, int64_t padding, double deviation) {
  torch::nn::EmbeddingOptions options(rows, width);
  if (padding >= 0) options.padding_idx(padding);
  torch::nn::Embedding layer(options);
  torch::NoGradGuard no_grad;
  layer->weight.normal_(0, deviation);
  if (padding >= 0) layer->weight[padding].zero_();
  return layer;
}

torch::nn::LayerNorm layer_norm(int64_t width, double epsilon) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}).eps(epsilon));
}

void check_input(const LanguageOptions& options, const LanguageInput& input, int64_t longest) {
  const auto& [ids, mask, documents, positions] = input;
  const auto refuse = [&](const auto&... what) {
    throw_error(Code::kInvalidArgument, base::str("model ", options.type, ": ", what...));
  };
  if (ids.dim() != 2 || ids.scalar_type() != torch::kLong)
    refuse("expected ids Long [batch, length], found ", ids.scalar_type(), " ", ids.sizes());
  if (longest > 0 && ids.size(1) > longest)
    refuse("the sequences have ", ids.size(1), " tokens, the model's positions serve ", longest,
           "; cut the sequences or take a model with more positions");
  if (mask.defined() && (mask.sizes() != ids.sizes() || mask.scalar_type() != torch::kBool))
    refuse("expected a mask Bool ", ids.sizes(), ", found ", mask.scalar_type(), " ", mask.sizes());
  if (documents.defined() != positions.defined())
    refuse("expected documents and positions, or none of them; the ",
           documents.defined() ? "positions" : "documents", " are missing");
  for (const auto& [name, tensor] : {std::pair{"documents", documents}, std::pair{"positions", positions}})
    if (tensor.defined() && (tensor.sizes() != ids.sizes() ||
                             (tensor.scalar_type() != torch::kLong && tensor.scalar_type() != torch::kInt)))
      refuse("expected ", name, " Long or Int ", ids.sizes(), ", found ", tensor.scalar_type(), " ",
             tensor.sizes());
}

torch::Tensor last_states(const LanguageOptions& options, const LanguageInput& input,
                          const torch::Tensor& states) {
  const int64_t length = states.size(1);
  torch::Tensor real = input.mask;
  if (!real.defined() && options.padding >= 0) real = input.ids.ne(options.padding);
  if (!real.defined()) return states.select(1, length - 1);
  const torch::Tensor place = torch::arange(length, input.ids.options());
  const torch::Tensor last = (place * real).amax(1).view({-1, 1, 1}).expand({-1, 1, states.size(2)});
  return states.gather(1, last).squeeze(1);
}

void check_classified(const LanguageOptions& options, const LanguageInput& input) {
  if (input.documents.defined())
    throw_error(Code::kInvalidArgument,
                base::str("model ", options.type, ": a sequence with several documents has no one class"));
}

void refuse_head(const LanguageOptions& options) {
  throw_error(Code::kFailedPrecondition,
              base::str("model ", options.type, " is a classifier of ", options.classes,
                        " classes: it has no head of words; call classify"));
}

Seen seen(const LanguageInput& input, bool causal) {
  if (!input.mask.defined() && !input.documents.defined()) return {std::nullopt, causal};
  if (!causal && !input.documents.defined()) {
    // The mask also applies to queries in the padding, because RoBERTa's classifier uses the first place even
    // if it is padding. A row of only padding sees all of it, so that its softmax has terms.
    const torch::Tensor nothing = input.mask.any(1, /*keepdim=*/true).logical_not();
    return {input.mask.logical_or(nothing).unsqueeze(1).unsqueeze(1), false};
  }
  const torch::Tensor place = torch::arange(input.ids.size(1), input.ids.options());
  const torch::Tensor query = place.unsqueeze(1), key = place.unsqueeze(0);
  torch::Tensor visible;
  const auto also = [&visible](const torch::Tensor& rule) {
    visible = visible.defined() ? visible.logical_and(rule) : rule;
  };
  if (input.mask.defined()) also(input.mask.unsqueeze(1).unsqueeze(1));
  if (input.documents.defined()) {
    const torch::Tensor document = input.documents.unsqueeze(1);
    also(document.unsqueeze(3).eq(document.unsqueeze(2)));
  }
  if (causal) also(key.lt(query));
  return {visible.logical_or(key.eq(query)), false};
}

LanguageInput input_behind(const LanguageOptions& options, const LanguageInput& input, LanguageCache& cache) {
  check_input(options, input, /*longest=*/0);
  const int64_t batch = input.ids.size(0), length = input.ids.size(1), held = cache.visible.size(0);
  const auto refuse = [&](const auto&... what) {
    throw_error(Code::kInvalidArgument, base::str("model ", options.type, ": ", what...));
  };
  if (batch != held) refuse("the cache is for ", held, " sequences, the ids have ", batch);
  if (input.documents.defined()) refuse("a cache is for one document a sequence");
  if (cache.used > 0 && (length != 1 || input.mask.defined()))
    refuse("a cache takes one token at a time after the first tokens, without a mask; found ", length);
  if (cache.used + length > cache.capacity)
    refuse("the cache has room for ", cache.capacity, " tokens and holds ", cache.used, "; found ", length,
           " more");
  LanguageInput placed = {input.ids, input.mask};
  if (cache.used > 0) {
    placed.positions = cache.positions.clone();
    cache.visible.index_fill_(1, cache.next, true);
    cache.positions.add_(1);
  } else {
    const torch::Tensor real = input.mask.defined() ? input.mask : torch::ones_like(input.ids, torch::kBool);
    const torch::Tensor count = real.to(torch::kLong).cumsum(1);
    placed.positions = (count - 1).clamp_min(0);
    cache.visible.slice(1, 0, length).copy_(real);
    cache.positions.copy_(count.slice(1, length - 1, length));
  }
  cache.used += length;
  return placed;
}

Seen seen_behind(const LanguageInput& input, const LanguageCache& cache) {
  if (cache.used == input.ids.size(1)) return seen({input.ids, input.mask}, /*causal=*/true);
  Seen all;
  all.mask = cache.visible.unsqueeze(1).unsqueeze(1);
  all.slot = cache.next;
  return all;
}

torch::Tensor split_heads(const torch::Tensor& x, int64_t heads) {
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

torch::Tensor attention(const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
                        const Seen& seen, double dropout, std::optional<double> scale) {
  if (seen.slot.defined()) return of_memory(query, key, value, seen, scale);
  if (seen.memory != nullptr) {
    seen.memory->keys.slice(2, 0, key.size(2)).copy_(key);
    seen.memory->values.slice(2, 0, value.size(2)).copy_(value);
  }
  const torch::Tensor together =
      at::scaled_dot_product_attention(query, key, value, seen.mask, dropout, seen.causal, scale,
                                       /*enable_gqa=*/query.size(1) != key.size(1));
  return together.transpose(1, 2).flatten(2);
}

}  // namespace sluice::models::language_detail
