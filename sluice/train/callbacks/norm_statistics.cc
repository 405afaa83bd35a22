#include "sluice/train/callbacks/norm_statistics.h"

#include <utility>

namespace sluice::train {
namespace {

template <typename Norm>
Norm* as_norm(torch::nn::Module& module) {
  auto* const norm = dynamic_cast<Norm*>(&module);
  return norm != nullptr && norm->running_mean.defined() && norm->running_var.defined() ? norm : nullptr;
}

// Calls `visit` with each BatchNorm that keeps statistics.
template <typename Visit>
void for_each_norm(const torch::nn::Module& module, const Visit& visit) {
  for (const auto& one : module.modules(/*include_self=*/false)) {
    if (auto* norm = as_norm<torch::nn::BatchNorm1dImpl>(*one)) visit(*norm);
    if (auto* norm = as_norm<torch::nn::BatchNorm2dImpl>(*one)) visit(*norm);
    if (auto* norm = as_norm<torch::nn::BatchNorm3dImpl>(*one)) visit(*norm);
  }
}

}  // namespace

bool NormStatistics::any_in(const torch::nn::Module& module) {
  bool any = false;
  for_each_norm(module, [&](auto&) { any = true; });
  return any;
}

NormStatistics::NormStatistics(torch::nn::Module& module) {
  for_each_norm(module, [this](auto& norm) {
    One one;
    one.mean = norm.running_mean;
    one.variance = norm.running_var;
    one.batches = norm.num_batches_tracked;
    if (one.batches.defined()) one.batches_before = one.batches.clone();
    one.put_back = [&norm, momentum = norm.options.momentum()] { norm.options.momentum(momentum); };
    norm.options.momentum(1.0);  // the same number for each batch, so that all batches share a program
    all_.push_back(std::move(one));
  });
}

NormStatistics::~NormStatistics() {
  torch::NoGradGuard no_grad;
  for (const One& one : all_) {
    one.put_back();
    if (one.batches.defined()) one.batches.copy_(one.batches_before);
  }
}

void NormStatistics::add() {
  torch::NoGradGuard no_grad;
  for (One& one : all_) {
    one.mean_sum = one.mean_sum.defined() ? one.mean_sum + one.mean : one.mean.clone();
    one.variance_sum = one.variance_sum.defined() ? one.variance_sum + one.variance : one.variance.clone();
  }
  ++count_;
}

void NormStatistics::finish() {
  if (count_ == 0) return;
  torch::NoGradGuard no_grad;
  for (const One& one : all_) {
    one.mean.copy_(one.mean_sum / count_);
    one.variance.copy_(one.variance_sum / count_);
  }
}

}  // namespace sluice::train
