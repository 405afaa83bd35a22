#include "sluice/train/language/language_steps.h"

#include <cmath>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/train/language/token_loss.h"

namespace sluice::train {
namespace language_steps_detail {

using models::LanguageInput;
using models::LanguageModelPtr;

// The rows of a batch of text::TokenBatches, by its columns (sluice/text/token_batches.h).
struct Rows {
  torch::Tensor ids;
  torch::Tensor lengths;               // of single documents, [N]
  torch::Tensor documents, positions;  // of packed documents, [N, L]
};
Rows rows_of(const Batch& batch, size_t behind) {
  const auto& columns = batch.columns;
  const size_t own = columns.size() >= behind ? columns.size() - behind : 0;
  Rows rows;
  if (own >= 1) rows.ids = columns[0];
  if (own == 2) rows.lengths = columns[1];
  if (own == 3) {
    rows.documents = columns[1];
    rows.positions = columns[2];
  }
  if (own < 1 || own > 3 || rows.ids.dim() != 2 || rows.ids.scalar_type() != torch::kLong)
    throw_error(
        Code::kInvalidArgument,
        base::str("expected batches of text::TokenBatches, found one with ", columns.size(), " columns",
                  own >= 1 ? base::str(", the first ", columns[0].scalar_type(), " ", columns[0].sizes())
                           : std::string()));
  return rows;
}

torch::Tensor inside(const Rows& rows) {
  const torch::Tensor places = torch::arange(rows.ids.size(1), rows.lengths.options());
  return places.unsqueeze(0).lt(rows.lengths.unsqueeze(1));
}

// Returns the token to predict at each place, or kNoTarget: [N, L].
torch::Tensor next_tokens(const Rows& rows, const Batch& batch) {
  const auto next = [](const torch::Tensor& x) { return x.slice(1, 1); };
  torch::Tensor targets = next(rows.ids);
  if (rows.lengths.defined())
    targets = torch::where(next(inside(rows)), targets, torch::full_like(targets, kNoTarget));
  if (rows.documents.defined()) {
    const torch::Tensor behind = next(rows.documents), here = rows.documents.slice(1, 0, -1);
    const torch::Tensor same = behind.eq(here).logical_and(behind.gt(0));
    targets = torch::where(same, targets, torch::full_like(targets, kNoTarget));
  }
  const bool running = !rows.lengths.defined() && !rows.documents.defined();
  // Other rows show by their lengths and documents that an empty row predicts nothing.
  if (running && batch.mask.defined())
    targets = torch::where(batch.mask.unsqueeze(1), targets, torch::full_like(targets, kNoTarget));
  // The last place of a document row predicts nothing; rows of running text have one token more.
  return running ? targets : torch::constant_pad_nd(targets, {0, 1}, kNoTarget);
}

StepOutput output_of(const TokenLoss& loss) {
  return {.loss = loss.sum / loss.count.clamp_min(1), .weight = loss.count};
}

StepOutput next_token_step(models::LanguageModel& model, const Batch& batch) {
  const Rows rows = rows_of(batch, /*behind=*/0);
  const bool running = !rows.lengths.defined() && !rows.documents.defined();
  // Padding comes after a row's tokens, which do not see it.
  const LanguageInput input{.ids = running ? rows.ids.slice(1, 0, -1) : rows.ids,
                            .documents = rows.documents,
                            .positions = rows.positions};
  const torch::Tensor states = model.states(input);
  return output_of(token_loss(model, states.flatten(0, 1), next_tokens(rows, batch).flatten()));
}

StepOutput masked_step(models::LanguageModel& model, const Batch& batch) {
  const Rows rows = rows_of(batch, /*behind=*/2);
  const torch::Tensor &places = batch.columns[batch.columns.size() - 2], &targets = batch.columns.back();
  const LanguageInput input{.ids = rows.ids,
                            .mask = rows.lengths.defined() ? inside(rows) : torch::Tensor(),
                            .documents = rows.documents,
                            .positions = rows.positions};
  const torch::Tensor states = model.states(input);
  const torch::Tensor chosen =
      states.gather(1, places.unsqueeze(2).expand({places.size(0), places.size(1), states.size(2)}));
  const TokenLoss loss = token_loss(model, chosen.flatten(0, 1), targets.flatten());
  StepOutput output = output_of(loss);
  torch::NoGradGuard no_grad;
  const torch::Tensor right = loss.answers.eq(targets.flatten()).sum();
  output.logs = {{"accuracy", (right / loss.count.clamp_min(1)).to(torch::kFloat)}};
  return output;
}

Steps steps_of(const LanguageModelPtr& model, StepOutput (*step)(models::LanguageModel&, const Batch&)) {
  Steps steps;
  steps.training_step = [model, step](Batch& batch) { return step(*model, batch); };
  steps.validation_step = steps.training_step;
  steps.derive = [](metrics::Values& values) {
    const metrics::Value loss = values.value("loss");
    values.numbers.push_back({"perplexity", std::exp(loss.number), loss.count});
  };
  steps.files = {{"config.json", models::language_config(model->options())}};
  return steps;
}

}  // namespace language_steps_detail

Steps next_token_steps(models::LanguageModelPtr model) {
  namespace detail = language_steps_detail;
  if (!models::is_decoder(model->options()))
    throw_error(Code::kInvalidArgument,
                "roberta sees the token that it would have to predict: train it with masked_steps, or take "
                "gpt2 or llama");
  return detail::steps_of(model, detail::next_token_step);
}

Steps masked_steps(models::LanguageModelPtr model) {
  namespace detail = language_steps_detail;
  if (models::is_decoder(model->options()))
    throw_error(
        Code::kInvalidArgument,
        base::str(model->options().type,
                  " sees only what is before a token: train it with next_token_steps, or take roberta"));
  return detail::steps_of(model, detail::masked_step);
}

}  // namespace sluice::train
