// The choice of the next token, on the tensors' device: nothing here waits for a value.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice {

// The options, applied in transformers' order: the penalty, the temperature, top_k, top_p.
struct SamplingOptions {
  bool greedy = false;            // the likeliest token; temperature, top_k and top_p then change nothing
  double repetition_penalty = 1;  // above 0; above 1 makes tokens that the sequence already has less likely
  double temperature = 1;         // above 0; below 1 the likely become likelier
  int64_t top_k = 0;              // only this number of the likeliest; 0: all
  double top_p = 1;  // only the likeliest that together have this probability; above 0, at most 1
};
// Throws sluice::Error (kInvalidArgument) that names the option.
void check(const SamplingOptions& options);

// Returns [batch, vocabulary] of logits f32 [batch, vocabulary]: with the penalty and the temperature, and
// -inf for tokens that must not be chosen. `seen`: bool [batch, vocabulary], the tokens that get the penalty;
// undefined: no tokens.
torch::Tensor limited_logits(torch::Tensor logits, const SamplingOptions& options,
                             const torch::Tensor& seen = {});
// Returns int64 [batch], drawn from these logits' probabilities; without a generator, by LibTorch's own.
torch::Tensor draw_tokens(const torch::Tensor& logits, std::optional<at::Generator> generator = {});

}  // namespace sluice
SLUICE_API_END
