// The steps of a language model's training, over the batches of text::TokenBatches.
//
//   const auto model = sluice::models::language_model(sluice::models::language_preset("gpt2-mini"));
//   sluice::train::Trainer trainer(options, {train, test});  // text::TokenBatches with next_token
//   trainer.fit(*model, sluice::train::next_token_steps(model));
//
// The loss is in nats per predicted token, over all replicas and all batches of an update.
#pragma once

#include "sluice/base/export.h"
#include "sluice/models/language/language.h"
#include "sluice/train/steps.h"

SLUICE_API_BEGIN

namespace sluice::train {

// Causal language modelling: each token is predicted from the tokens before it in its document (or in its row
// of running text). Throws kInvalidArgument for a model that sees the whole sequence.
Steps next_token_steps(models::LanguageModelPtr model);
// Masked language modelling: the batches contain the places and their tokens (TokenBatchOptions::masking).
// Besides the loss, the steps give the share of tokens that the model finds, as "accuracy".
Steps masked_steps(models::LanguageModelPtr model);

}  // namespace sluice::train

SLUICE_API_END
