#include "sluice/train/batch_group.h"

#include "sluice/base/error.h"
#include "sluice/base/strings.h"

namespace sluice::train {
namespace {

constexpr double kMinWeight = 1e-30;  // of a group in which nothing counts

void add_to(torch::Tensor& sum, const torch::Tensor& value) { sum = sum.defined() ? sum + value : value; }

std::string names_of(const NamedValues& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return base::join(names, ", ");
}

}  // namespace

void BatchGroup::backward(const torch::Tensor& mean, const torch::Tensor& loss,
                          const std::optional<RowWeights>& weights) {
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
  if (!sums_.empty() && names_of(sums_) != names_of(means))
    throw_error(Code::kInvalidArgument,
                base::str("a step logs ", names_of(means), ", the one before it in the same update ",
                          names_of(sums_), ": the names must be the same in every step"));
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
