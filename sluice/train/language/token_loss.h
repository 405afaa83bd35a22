// The cross-entropy of a language model's head, without all logits at once.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "sluice/base/export.h"
#include "sluice/models/language/language.h"

SLUICE_API_BEGIN

namespace sluice::train {

inline constexpr int64_t kNoTarget = -100;  // target of a place whose token is not predicted

// The loss over this replica's tokens.
struct TokenLoss {
  torch::Tensor sum;      // f32, one element: nats
  torch::Tensor count;    // int64, one element: the number of predicted tokens
  torch::Tensor answers;  // the token with each place's highest logit, int64 [T]
};

// states: [T, width], of places; targets: int64 [T], the tokens to predict there, or kNoTarget. With more
// than `max_logits` logits (T × vocabulary) the logits of some places are computed at a time, together with
// their gradients: no [T, vocabulary] tensor ever exists. 0: a limit of 2^25 logits, 128 MiB.
TokenLoss token_loss(models::LanguageModel& model, const torch::Tensor& states, const torch::Tensor& targets,
                     int64_t max_logits = 0);

}  // namespace sluice::train

SLUICE_API_END
