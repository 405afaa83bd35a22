#include "sluice/train/loop/batch_group.h"

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::train {
namespace {

constexpr double kMinWeight = 1e-30;  // the divisor of a group in which nothing counts

void add_to(torch::Tensor& sum, const torch::Tensor& value) { sum = sum.defined() ? sum + value : value; }

std::string names_of(const NamedValues& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return base::join(names, ", ");
}

}  // namespace

void check_same_names(const NamedValues& before, const NamedValues& now) {
  if (names_of(before) == names_of(now)) return;
  throw_error(Code::kInvalidArgument,
              base::str("the step gives the values ", names_of(now), ", the one before it gave ",
                        names_of(before), ": the names must be the same in every step"));
}

void check_has_gradient(const torch::Tensor& loss) {
  if (loss.requires_grad()) return;
  throw_error(
      Code::kInvalidArgument,
      "the loss has no gradient, because it depends on no parameter that is trained: was it detached, "
      "was it computed under torch::NoGradGuard, or are all parameters frozen?");
}

void BatchGroup::backward(const torch::Tensor& mean, const torch::Tensor& loss,
                          const std::optional<RowWeights>& weights) {
  check_has_gradient(mean);
  if (batches_ == 1 || !weights) return mean.backward();
  weights->sum("loss", loss).backward();
  add_to(weight_, weights->everywhere());
}

void BatchGroup::scale_gradients(const torch::nn::Module& model) const {
  if (batches_ == 1) return;
  torch::NoGradGuard no_grad;
  const torch::Tensor by_weight =
      weight_.defined() ? replicas_ / weight_.clamp_min(kMinWeight) : torch::Tensor();
  for (const torch::Tensor& parameter : model.parameters()) {
    if (!parameter.grad().defined()) continue;
    if (by_weight.defined())
      parameter.mutable_grad().mul_(by_weight);
    else
      parameter.mutable_grad().mul_(1.0 / static_cast<double>(batches_));
  }
}

void BatchGroup::add(const NamedValues& means, const std::optional<RowWeights>& weights) {
  torch::NoGradGuard no_grad;
  if (!sums_.empty()) check_same_names(sums_, means);
  if (batches_ == 1) {
    sums_ = means;
    return;
  }
  const bool first = sums_.empty();
  if (weights) add_to(value_weight_, weights->everywhere());
  for (size_t i = 0; i < means.size(); ++i) {
    const torch::Tensor part = weights ? means[i].second * weights->everywhere() : means[i].second;
    if (first) {
      sums_.emplace_back(means[i].first, part);
    } else {
      add_to(sums_[i].second, part);
    }
  }
}

NamedValues BatchGroup::means() const {
  if (batches_ == 1) return sums_;
  torch::NoGradGuard no_grad;
  NamedValues result;
  for (const auto& [name, sum] : sums_)
    result.emplace_back(name, value_weight_.defined() ? sum / value_weight_.clamp_min(kMinWeight)
                                                      : sum / static_cast<double>(batches_));
  return result;
}

}  // namespace sluice::train
