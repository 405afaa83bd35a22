#include "sluice/train/evaluation/evaluate.h"

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/replica/collectives.h"

namespace sluice::train {

int64_t rows_of(const Batch& batch) {
  if (batch.mask.defined()) return batch.mask.size(0);
  return batch.columns.empty() || batch.columns[0].dim() == 0 ? 1 : batch.columns[0].size(0);
}

void check_columns(const Batch& batch) {
  if (batch.columns.empty())
    throw_error(
        Code::kInvalidArgument,
        "the batches have no field that is a number, an array or an image: name a member that is one "
        "(images need .images() or .decode(\"rgb8\"), classes need .labels() or an extension such as cls)");
}

std::string ShapeNames::name(const std::string& what, const Batch& batch) {
  if (batch.columns.empty()) return what;
  const std::vector<int64_t> sizes = batch.columns[0].sizes().vec();
  if (first_.empty()) first_ = sizes;
  return sizes == first_ && !all_ ? what : base::str(what, " [", base::join(sizes, ", "), "]");
}

namespace evaluate_detail {

// Returns one number for each row, or undefined for a value of one element.
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
  // The values of padding may be anything, such as the logarithm of 0.
  const torch::Tensor counted = torch::where(batch.mask, rows, torch::zeros_like(rows));
  return counted.sum() / batch.mask.to(rows.scalar_type()).sum().clamp_min(1) * batch.weight;
}

RowWeights::RowWeights(const torch::Tensor& weight, const Batch& batch, int replicas)
    : batch_(batch), replicas_(replicas) {
  torch::NoGradGuard no_grad;
  const int64_t rows = rows_of(batch);
  if (weight.numel() != 1 && !(weight.dim() == 1 && weight.size(0) == rows))
    throw_error(Code::kInvalidArgument,
                base::str("the weight of a step has the shape ", weight.sizes(),
                          ": expected one element, or one for each of the batch's ", rows, " rows"));
  torch::Tensor each = weight.detach().to(torch::kFloat);
  if (weight.dim() == 1 && weight.size(0) == rows) {
    rows_ = batch.mask.defined() ? torch::where(batch.mask, each, torch::zeros_like(each)) : each;
    here_ = rows_.sum();
  } else {
    here_ = each.reshape({});
    const torch::Tensor real =
        batch.mask.defined() ? batch.mask.to(torch::kFloat) : torch::ones({rows}, each.options());
    rows_ = here_ * real / real.sum().clamp_min(1);
  }
  everywhere_ = replicas > 1 ? sluice::sum(here_) : here_;
}

torch::Tensor RowWeights::sum(const std::string& what, const torch::Tensor& value) const {
  const torch::Tensor rows = evaluate_detail::by_row(what, value, batch_);
  if (!rows.defined()) return value.reshape({}) * here_;
  return torch::where(rows_.gt(0), rows * rows_, torch::zeros_like(rows_)).sum();
}

torch::Tensor RowWeights::mean(const std::string& what, const torch::Tensor& value) const {
  return sum(what, value) * (replicas_ / everywhere_.clamp_min(1e-30));
}

void BatchMeans::add(const NamedValues& values, const Batch& batch, const torch::Tensor& weight,
                     const torch::Tensor& output, const torch::Tensor& target) {
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
  std::optional<RowWeights> weights;
  if (weight.defined()) weights.emplace(weight, batch, /*replicas=*/1);
  for (const auto& [name, value] : values) {
    const torch::Tensor rows = evaluate_detail::by_row(name, value, batch);
    if (weights) {
      sums_->add(name, rows.defined() ? rows.detach() : value.detach().reshape({}), weights->for_value(rows));
    } else if (rows.defined()) {
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
                    const std::function<bool()>& stop, const std::function<void(int64_t)>& on_batch,
                    const std::function<void(const Batch&, const StepOutput&)>& look) {
  torch::NoGradGuard no_grad;
  BatchMeans means(session, steps.metrics);
  Evaluation result;
  ShapeNames names;
  int64_t done = 0, samples = 0;
  bool weighted = false;
  for (auto& batch : feed) {
    check_columns(batch);
    std::optional<Autocast> lower;
    if (autocast) lower.emplace(session.device());
    const StepOutput step = steps.validation_step(batch);
    lower.reset();
    NamedValues values;
    if (step.loss.defined()) values.emplace_back("loss", step.loss);
    values.insert(values.end(), step.logs.begin(), step.logs.end());
    means.add(values, batch, step.weight, step.output, step.target);
    weighted |= step.weight.defined();
    samples += batch.count;
    if (look) look(batch, step);
    session.sync(names.name("evaluate", batch).c_str());
    on_batch(++done);
    if (done == most) break;
    if (stop()) {
      result.stopped = true;
      break;
    }
  }
  session.finish();
  result.values = means.compute();
  if (!weighted && !result.values.numbers.empty()) result.samples = result.values.numbers.front().count;
  if (weighted)
    for (const std::string& of_process : session.gather_on_host("evaluated samples", std::to_string(samples)))
      result.samples += base::number_of<int64_t>(of_process).value_or(0);
  // Processes of a mesh may read the same part.
  if (weighted) result.samples = result.samples * session.batch_parts() / session.processes();
  if (steps.derive && !result.values.numbers.empty()) steps.derive(result.values);
  return result;
}

}  // namespace sluice::train
