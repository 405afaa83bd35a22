#include "sluice/train/classification.h"

#include "sluice/metrics/names.h"

namespace sluice::train {
namespace classification_detail {

using torch::nn::functional::cross_entropy;
using torch::nn::functional::CrossEntropyFuncOptions;

// Returns the last two columns of a mixed batch (data/batch.h): the other label, and the share of the row's
// own.
std::pair<torch::Tensor, torch::Tensor> mixed_in(const Batch& batch) {
  return {batch.columns[batch.columns.size() - 2], batch.columns.back()};
}

// Returns which rows are right; for a mixed row the larger part counts. Empty if labels are not classes.
NamedValues right(const torch::Tensor& output, const Batch& batch, bool mixed) {
  if (output.dim() != 2 || batch.label.dim() != 1 || batch.label.scalar_type() != torch::kLong) return {};
  torch::NoGradGuard no_grad;
  torch::Tensor label = batch.label;
  if (mixed) {
    const auto [other, own] = mixed_in(batch);
    label = torch::where(own.ge(0.5), label, other);
  }
  return {{"accuracy", output.detach().argmax(1).eq(label).to(torch::kFloat)}};
}

}  // namespace classification_detail

Steps classification(const TrainOptions& options, std::function<torch::Tensor(const Batch&)> logits) {
  namespace detail = classification_detail;
  Steps steps;
  const bool mixed = options.mixup > 0 || options.cutmix > 0;
  steps.training_step = [&options, logits, mixed](Batch& batch) -> StepOutput {
    auto settings = detail::CrossEntropyFuncOptions().label_smoothing(options.label_smoothing);
    if (mixed || batch.mask.defined()) settings.reduction(torch::kNone);
    const torch::Tensor output = logits(batch);
    torch::Tensor loss = detail::cross_entropy(output, batch.label, settings);
    if (mixed) {
      const auto [other, own] = detail::mixed_in(batch);
      loss = own * loss + (1 - own) * detail::cross_entropy(output, other, settings);
    }
    return {.loss = loss, .epoch_logs = detail::right(output, batch, mixed)};
  };
  steps.validation_step = [logits](Batch& batch) -> StepOutput {
    const torch::Tensor output = logits(batch).to(torch::kFloat);
    return {.loss = detail::cross_entropy(output, batch.label,
                                          detail::CrossEntropyFuncOptions().reduction(torch::kNone)),
            .output = output,
            .target = batch.label};
  };
  steps.metrics = {metrics::TopK(1).named("accuracy")};
  for (metrics::Metric& metric : metrics::make_metrics(options.metrics, options.classes))
    steps.metrics.push_back(std::move(metric));
  steps.monitor = {.name = "accuracy", .higher_is_better = true};
  return steps;
}

Steps image_classification(const TrainOptions& options, std::function<torch::Tensor(torch::Tensor)> forward) {
  return classification(options, [forward](const Batch& batch) { return forward(batch.image); });
}

}  // namespace sluice::train
