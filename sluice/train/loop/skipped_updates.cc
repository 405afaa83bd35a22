#include "sluice/train/loop/skipped_updates.h"

#include <map>

#include "sluice/replica/collectives.h"
#include "sluice/session/files/checkpoint.h"

namespace sluice::train {
namespace {

torch::Tensor keep(const torch::Tensor& value) { return value.detach().clone(); }

void put_back(const torch::Tensor& value, const torch::Tensor& made, const torch::Tensor& before) {
  value.copy_(torch::where(made, value, before));
}

}  // namespace

void SkippedUpdates::begin_step() {
  torch::NoGradGuard no_grad;
  all_made_ = torch::Tensor();
  buffers_.clear();
  for (const torch::Tensor& buffer : model_.buffers()) buffers_.emplace_back(buffer, keep(buffer));
}

// Returns the optimizers' floating-point state; their step numbers are on the host.
SkippedUpdates::Slots SkippedUpdates::slots() const {
  Slots slots;
  for (auto* optimizer : optimizers_)
    for (const auto& [name, tensor] : sessions::optimizer_tensors(*optimizer, model_))
      if (tensor.is_floating_point()) slots.emplace_back(name, tensor);
  return slots;
}

void SkippedUpdates::before_update(const torch::Tensor& loss,
                                   const std::vector<torch::optim::Optimizer*>& optimizers) {
  torch::NoGradGuard no_grad;
  optimizers_ = optimizers;
  std::vector<torch::Tensor> parameters;
  for (auto* optimizer : optimizers)
    for (const auto& group : optimizer->param_groups())
      parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  session_.reduce_gradients(parameters);
  // The loss differs by replica; if it is NaN or infinite anywhere, the update is bad everywhere.
  torch::Tensor bad = torch::isfinite(loss.detach()).all().logical_not().to(torch::kFloat);
  if (session_.replicas() > 1) bad = sluice::sum(bad);
  made_ = bad.eq(0);
  weights_.clear();
  slots_.clear();
  for (const torch::Tensor& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    made_ = made_.logical_and(torch::isfinite(parameter.grad()).all());
    weights_.emplace_back(parameter, keep(parameter));
  }
  for (const auto& [name, slot] : slots()) slots_.emplace_back(name, keep(slot));
}

void SkippedUpdates::after_update() {
  torch::NoGradGuard no_grad;
  for (const auto& [parameter, before] : weights_) put_back(parameter, made_, before);
  const std::map<std::string, torch::Tensor> before(slots_.begin(), slots_.end());
  for (const auto& [name, slot] : slots()) {
    const auto held = before.find(name);  // end(): the update has created it
    put_back(slot, made_, held == before.end() ? torch::zeros_like(slot) : held->second);
  }
  all_made_ = all_made_.defined() ? all_made_.logical_and(made_) : made_;
  weights_.clear();
  slots_.clear();
}

torch::Tensor SkippedUpdates::end_step() {
  torch::NoGradGuard no_grad;
  if (!all_made_.defined()) all_made_ = torch::ones({}, torch::dtype(torch::kBool).device(session_.device()));
  for (const auto& [buffer, before] : buffers_) put_back(buffer, all_made_, before);
  buffers_.clear();
  return all_made_.logical_not().to(torch::kFloat);
}

}  // namespace sluice::train
