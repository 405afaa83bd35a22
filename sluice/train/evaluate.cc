#include "sluice/train/evaluate.h"

#include "sluice/base/error.h"
#include "sluice/base/strings.h"

namespace sluice::train {

int64_t rows_of(const Batch& batch) {
  if (batch.mask.defined()) return batch.mask.size(0);
  return batch.columns.empty() || batch.columns[0].dim() == 0 ? 1 : batch.columns[0].size(0);
}

void check_columns(const Batch& batch) {
  if (batch.columns.empty())
    throw_error(Code::kInvalidArgument,
                "the batches have no field that is a number, an array or an image: members stay bytes unless "
                "the set decodes them (.decode(\"rgb8\"), or .images() and .labels())");
}

namespace evaluate_detail {

// One number for each row, or undefined for a value of one element.
torch::Tensor by_row(const std::string& what, const torch::Tensor& value, const Batch& batch) {
  const int64_t rows = rows_of(batch);
  if (!value.is_floating_point())
    throw_error(Code::kInvalidArgument,
                base::str("'", what, "' of a step has the type ", value.scalar_type(),
                          ": expected floating-point numbers, so convert it with .to(torch::kFloat)"));
  if (value.dim() > 0 && value.size(0) == rows) return value.dim() == 1 ? value : value.flatten(1).mean(1);
  if (value.numel() == 1) return {};
  throw_error(Code::kInvalidArgument,
              base::str("'", what, "' of a step has the shape ", value.sizes(),
                        ": expected one element, or one for each of the batch's ", rows, " rows"));
}

}  // namespace evaluate_detail

torch::Tensor mean_of(const std::string& what, const torch::Tensor& value, const Batch& batch) {
  if (value.dim() == 0 && value.is_floating_point()) return value;
  const torch::Tensor rows = evaluate_detail::by_row(what, value, batch);
  if (!rows.defined()) return value.reshape({});
  if (!batch.mask.defined()) return rows.mean();
  // What padding gives may be anything, such as the logarithm of nothing.
  const torch::Tensor counted = torch::where(batch.mask, rows, torch::zeros_like(rows));
  return counted.sum() / batch.mask.to(rows.scalar_type()).sum().clamp_min(1) * batch.weight;
}

void BatchMeans::add(const NamedValues& values, const Batch& batch, const torch::Tensor& output,
                     const torch::Tensor& target) {
  torch::NoGradGuard no_grad;
  if (!sums_) {
    std::vector<metrics::Metric> all;
    for (const auto& [name, value] : values) {
      names_.push_back(name);
      all.push_back(metrics::Mean(name));
    }
    all.insert(all.end(), metrics_.begin(), metrics_.end());
    sums_.emplace(session_, std::move(all));
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  if (names != names_)
    throw_error(Code::kInvalidArgument,
                base::str("a step gives the values ", base::join(names, ", "), ", the ones before it gave ",
                          base::join(names_, ", "), ": they must be the same in every step"));
  for (const auto& [name, value] : values) {
    const torch::Tensor rows = evaluate_detail::by_row(name, value, batch);
    if (rows.defined()) {
      sums_->add(name, rows.detach(), batch.mask);
    } else {
      const torch::Tensor count =
          batch.mask.defined()
              ? batch.mask.sum()
              : torch::full({}, rows_of(batch), torch::dtype(torch::kLong).device(value.device()));
      sums_->add(name, value.detach().reshape({}), count);
    }
  }
  if (!metrics_.empty() && !output.defined())
    throw_error(Code::kInvalidArgument,
                "the steps have metrics, but their validation_step returns no output and target");
  if (!metrics_.empty()) sums_->update(output.detach(), target, batch.mask);
}

metrics::Values BatchMeans::compute() { return sums_ ? sums_->compute() : metrics::Values(); }

Evaluation evaluate(Session& session, const Steps& steps, Feed feed, int64_t most, bool autocast,
                    const std::function<bool()>& stop, const std::function<void(int64_t)>& on_batch) {
  torch::NoGradGuard no_grad;
  BatchMeans means(session, steps.metrics);
  Evaluation result;
  int64_t done = 0;
  for (auto& batch : feed) {
    check_columns(batch);
    std::optional<Autocast> lower;
    if (autocast) lower.emplace(session.device());
    const StepOutput step = steps.validation_step(batch);
    lower.reset();
    NamedValues values;
    if (step.loss.defined()) values.emplace_back("loss", step.loss);
    values.insert(values.end(), step.logs.begin(), step.logs.end());
    means.add(values, batch, step.output, step.target);
    session.sync("evaluate");
    on_batch(++done);
    if (done == most) break;
    if (stop()) {
      result.stopped = true;
      break;
    }
  }
  session.finish();
  result.values = means.compute();
  if (!result.values.numbers.empty()) result.samples = result.values.numbers.front().count;
  return result;
}

}  // namespace sluice::train
