// The cross-entropy of a language model's head, without all logits at once.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "sluice/base/export.h"
#include "sluice/models/language/language.h"

SLUICE_API_BEGIN

namespace sluice::train {

inline constexpr int64_t kNoTarget = -100;  // of places whose token is not predicted

// Over this replica's tokens.
struct TokenLoss {
  torch::Tensor sum;      // f32, one element: nats
  torch::Tensor count;    // int64, one element: tokens that were predicted
  torch::Tensor answers;  // the token with each place's highest logit, int64 [T]
};

// states: [T, width], of places; targets: int64 [T], the tokens to predict there, or kNoTarget. With more
// than `max_logits` logits (T × vocabulary) they are made for some places at a time, and with them at once
// their gradients: then no [T, vocabulary] tensor is ever there. 0: for as many as 2^25 logits, 128 MiB, are.
TokenLoss token_loss(models::LanguageModel& model, const torch::Tensor& states, const torch::Tensor& targets,
                     int64_t max_logits = 0);

}  // namespace sluice::train

SLUICE_API_END
