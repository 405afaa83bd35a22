// Metrics that are means: errors, perplexity, and means of the program's own values.
#include <cmath>
#include <limits>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/metrics/input.h"
#include "sluice/metrics/sums.h"

namespace sluice::metrics {
namespace means_detail {

double mean(double sum, double weight) {
  return weight != 0 ? sum / weight : std::numeric_limits<double>::quiet_NaN();
}

class ErrorDefinition : public Definition {
 public:
  explicit ErrorDefinition(bool squared) : squared_(squared) {}
  std::string name() const override { return squared_ ? "mse" : "mae"; }
  Sums zeros() const override { return {zero_sum(), zero_counts({1})}; }

  void update(const std::string& name, const Sums& sums, const std::vector<torch::Tensor>&,
              const Input& input) const override {
    const auto [output, target, mask] = measured(name, input);
    const torch::Tensor error = output - target;
    add_sum(sums[0], squared_ ? error.square() : error.abs(), mask);
    add_count(sums[1], mask);
  }

  void compute(const std::string& name, const Sums& totals, Values& values) const override {
    const auto count = totals[1].item<int64_t>();
    values.numbers.push_back({name, mean(totals[0].item<double>(), static_cast<double>(count)), count});
  }

 private:
  bool squared_;
};

class PerplexityDefinition : public Definition {
 public:
  explicit PerplexityDefinition(std::optional<int64_t> ignore_index) : ignore_index_(ignore_index) {}
  std::string name() const override { return "perplexity"; }
  Sums zeros() const override { return {zero_sum(), zero_counts({1})}; }

  void update(const std::string& name, const Sums& sums, const std::vector<torch::Tensor>&,
              const Input& input) const override {
    auto [output, target, mask] = labelled(name, 0, input);
    if (ignore_index_) {
      mask = mask.logical_and(target.ne(*ignore_index_));
      target = at::where(mask, target, at::zeros_like(target));
    }
    const torch::Tensor losses = output.log_softmax(1).gather(1, target.unsqueeze(1)).squeeze(1).neg();
    add_sum(sums[0], losses, mask);
    add_count(sums[1], mask);
  }

  void compute(const std::string& name, const Sums& totals, Values& values) const override {
    const auto count = totals[1].item<int64_t>();
    values.numbers.push_back(
        {name, std::exp(mean(totals[0].item<double>(), static_cast<double>(count))), count});
  }

 private:
  std::optional<int64_t> ignore_index_;
};

}  // namespace means_detail

// The sum, and the weight in two parts: integers, and other weights.
Sums MeanDefinition::zeros() const { return {zero_sum(), zero_counts({1}), zero_sum()}; }

void MeanDefinition::add(const std::string& name, const Sums& sums, const torch::Tensor& value,
                         const torch::Tensor& weight) const {
  if (!value.defined() || !at::isFloatingType(value.scalar_type()))
    throw_error(Code::kInvalidArgument,
                base::str("the mean '", name, "' expected values in floating point; found ",
                          value.defined() ? c10::toString(value.scalar_type()) : "an undefined tensor"));
  const torch::Tensor given = weight.defined() ? weight : at::ones({}, value.options().dtype(torch::kBool));
  if (!at::is_expandable_to(given.sizes(), value.sizes()))
    throw_error(Code::kInvalidArgument,
                base::str("the mean '", name, "' expected weights of the shape of the values, ",
                          value.sizes(), ", or one that expands to it; found ", given.sizes()));
  const torch::Tensor values = value.to(torch::kFloat), weights = given.expand(value.sizes());
  const torch::Tensor is_counted = weights.ne(0);
  add_sum(sums[0], values * weights.to(torch::kFloat), is_counted);
  if (at::isFloatingType(given.scalar_type()))
    add_sum(sums[2], weights.to(torch::kFloat), is_counted);
  else
    sums[1].add_(weights.to(torch::kLong).sum());
}

void MeanDefinition::compute(const std::string& name, const Sums& totals, Values& values) const {
  const double weight = static_cast<double>(totals[1].item<int64_t>()) + totals[2].item<double>();
  values.numbers.push_back(
      {name, means_detail::mean(totals[0].item<double>(), weight), std::llround(weight)});
}

MeanSquaredError::MeanSquaredError() : Metric(std::make_shared<means_detail::ErrorDefinition>(true)) {}
MeanAbsoluteError::MeanAbsoluteError() : Metric(std::make_shared<means_detail::ErrorDefinition>(false)) {}
Perplexity::Perplexity(std::optional<int64_t> ignore_index)
    : Metric(std::make_shared<means_detail::PerplexityDefinition>(ignore_index)) {}
Mean::Mean(const std::string& name) : Metric(std::make_shared<MeanDefinition>(name)) {}

}  // namespace sluice::metrics
