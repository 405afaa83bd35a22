#include "sluice/train/callbacks/weight_average.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/replica/collectives.h"
#include "sluice/session/backend.h"
#include "sluice/train/callbacks/norm_statistics.h"

namespace sluice::train {
namespace {

constexpr const char* kStale = " stale";  // in the state, after the number of updates

// Returns the tensors that can be averaged: parameters, followed by buffers.
NamedValues averaged_tensors(const torch::nn::Module& module, size_t* parameters = nullptr) {
  NamedValues result;
  for (const auto& item : module.named_parameters())
    if (item.value().is_floating_point()) result.emplace_back(item.key(), item.value());
  if (parameters != nullptr) *parameters = result.size();
  for (const auto& item : module.named_buffers())
    if (item.value().is_floating_point()) result.emplace_back(item.key(), item.value());
  return result;
}

}  // namespace

WeightAverage::WeightAverage(WeightAverageOptions options) : options_(options) {
  if (!(options.decay >= 0 && options.decay < 1))
    throw_error(Code::kInvalidArgument, base::str("an average of weights needs a decay of 0 or more and "
                                                  "below 1, such as 0.999, not ",
                                                  options.decay));
  if (options.warm_up && options.decay == 0)
    throw_error(Code::kInvalidArgument,
                "the warm-up of an average requires a decay, which is 0: an equal mean has no warm-up");
  if (options.every_steps < 0 || options.from_step < 0 || !(options.from_epoch >= 0))
    throw_error(
        Code::kInvalidArgument,
        base::str("an average of weights begins after 0 or more steps and epochs and is updated every N "
                  "steps, with N of 0 (each epoch) or more, not ",
                  options.from_step, ", ", options.from_epoch, " and ", options.every_steps));
}

bool WeightAverage::is_within_step() const {
  return options_.every_steps == 1 && options_.from_step == 0 && options_.from_epoch == 0;
}

bool WeightAverage::has_begun(const RunPlace& place, int64_t steps) const {
  return steps > options_.from_step && place.epoch > options_.from_epoch;
}

void WeightAverage::begin(Run& run) {
  torch::NoGradGuard no_grad;
  names_.clear();
  averages_.clear();
  // The device's zeros are known to be equal on all replicas, and the first update overwrites them.
  for (const auto& [name, tensor] : averaged_tensors(run.module(), &parameters_)) {
    names_.push_back(name);
    averages_.push_back(run.session().backend().zeros_like(tensor).requires_grad_(false));
  }
  take_loaded(run);
  run.session().sync("weight average");
}

void WeightAverage::take_loaded(Run& run) {
  if (loaded_.empty() && updates_ > 0)
    throw_error(Code::kDataLoss, base::str("the checkpoint counts ", updates_,
                                           " updates of averages, but has no averaged weights"));
  if (loaded_.empty()) return;
  const std::map<std::string, torch::Tensor> given(loaded_.begin(), loaded_.end());
  const NamedValues own = averaged_tensors(run.module());
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto found = given.find(names_[i]);
    if (found == given.end() && i >= parameters_) {  // the checkpoint only averages parameters
      averages_[i].copy_(own[i].second);
      stale_ = stale_ || options_.decay == 0;
      continue;
    }
    if (found == given.end() || found->second.sizes() != averages_[i].sizes())
      throw_error(Code::kDataLoss,
                  base::str("the checkpoint has no trained weights of shape ", averages_[i].sizes(), " for ",
                            names_[i], " beside its averages"));
    const sessions::Backend& backend = run.session().backend();
    const bool shared = backend.spans_processes();
    const torch::Tensor value = shared && found->second.is_cpu() ? backend.upload_equal(found->second)
                                                                 : found->second.to(averages_[i].device());
    // A value from the host may differ between the processes.
    averages_[i].copy_(run.session().processes() > 1 && !shared ? sluice::broadcast(value) : value);
  }
  loaded_.clear();
  exchange(run);  // the module has the averages, from model.safetensors
}

double WeightAverage::share_of_new() const {
  const auto n = static_cast<double>(updates_);
  if (updates_ == 0) return 1;
  if (options_.decay == 0) return 1 / (n + 1);
  return 1 - (options_.warm_up ? std::min(options_.decay, (1 + n) / (10 + n)) : options_.decay);
}

void WeightAverage::update(Run& run) {
  torch::NoGradGuard no_grad;
  const NamedValues own = averaged_tensors(run.module());
  const double share = share_of_new();
  const bool averages_buffers = options_.decay > 0;
  for (size_t i = 0; i < averages_.size(); ++i) {
    const torch::Tensor& value = own[i].second;
    if (i < parameters_) {
      averages_[i].lerp_(value, share);
    } else if (averages_buffers) {
      // A mask of -inf has no average: ∞ - ∞ is NaN.
      const torch::Tensor average = averages_[i].lerp(value, share);
      averages_[i].copy_(torch::where(torch::isfinite(average), average, value));
    } else {
      averages_[i].copy_(value);
    }
  }
  ++updates_;
  stale_ = !averages_buffers;
}

void WeightAverage::within_step(Run& run) {
  if (is_within_step()) update(run);
}

void WeightAverage::after_step(Run& run) {
  if (options_.every_steps == 0 || is_within_step()) return;
  const RunPlace place = run.place();
  if (!has_begun(place, place.step) || (place.step - options_.from_step) % options_.every_steps != 0) return;
  update(run);
  run.session().sync("weight average");
}

void WeightAverage::after_epoch(Run& run) {
  const RunPlace place = run.place();
  if (options_.every_steps > 0 || !has_begun(place, place.step)) return;
  update(run);
  run.session().sync("weight average");
}

void WeightAverage::exchange(Run& run) {
  if (updates_ == 0) return;
  torch::NoGradGuard no_grad;
  const NamedValues own = averaged_tensors(run.module());
  for (size_t i = 0; i < averages_.size(); ++i) {
    const torch::Tensor average = averages_[i].clone();  // it would be the same buffer on the device
    averages_[i].copy_(own[i].second);
    own[i].second.copy_(average);
  }
}

void WeightAverage::before_reading(Run& run) {
  if (updates_ == 0) return;
  exchange(run);
  if (stale_) measure_statistics(run);
  // Each replica averages its own statistics.
  if (averages_.size() > parameters_) run.session().sync_buffers(run.module());
}

void WeightAverage::measure_statistics(Run& run) {
  if (!NormStatistics::any_in(run.module())) {
    stale_ = false;
    return;
  }
  torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> before;
  for (const torch::Tensor& buffer : run.module().buffers()) before.push_back(buffer.clone());
  NormStatistics statistics(run.module());
  const bool whole = run.forward_epoch([&] { statistics.add(); });
  // The pass must not change other buffers.
  const auto buffers = run.module().buffers();
  for (size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(before[i]);
  // A run that is being stopped saves at once, and measures the statistics after it resumes.
  stale_ = !whole;
  if (whole) statistics.finish();
}

void WeightAverage::end(Run& run) {
  exchange(run);
  averages_.clear();
  updates_ = 0;
}

std::string WeightAverage::state() const { return std::to_string(updates_) + (stale_ ? kStale : ""); }

NamedValues WeightAverage::tensors() const {
  NamedValues result;
  if (updates_ == 0) return result;
  for (size_t i = 0; i < averages_.size(); ++i) result.emplace_back(names_[i], averages_[i]);
  return result;
}

void WeightAverage::load(const std::string& state) {
  stale_ = base::ends_with(state, kStale);
  const auto number = base::number_of<int64_t>(
      std::string_view(state).substr(0, state.size() - (stale_ ? std::strlen(kStale) : 0)));
  if (!number || *number < 0)
    throw_error(Code::kDataLoss, base::str("expected a number of updates, found '", state, "'"));
  updates_ = *number;
}

}  // namespace sluice::train
