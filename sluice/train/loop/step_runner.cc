#include "sluice/train/loop/step_runner.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/error.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/train/log/metrics_writer.h"

namespace sluice::train {
namespace step_runner_detail {

constexpr int64_t kMaxSkipped = 100;  // updates in a row

// Makes the updates of one step.
class StepUpdates final : public Updates {
 public:
  using Update = std::function<void(size_t optimizer, const torch::Tensor& loss)>;
  explicit StepUpdates(Update update) : update_(std::move(update)) {}
  void update(size_t optimizer, const torch::Tensor& loss) override { update_(optimizer, loss); }

 private:
  Update update_;
};

// Checks the names of a step's values.
void check_names(const NamedValues& values, const NamedValues& epoch_logs) {
  std::set<std::string> seen;
  for (const auto* named : {&values, &epoch_logs})
    for (const auto& [name, value] : *named) base::value_or_throw(check_name(name));
  for (const auto& [name, value] : values)
    if (!seen.insert(name).second)
      throw_error(
          Code::kInvalidArgument,
          base::str("it gives two values with the name '", name, "': ",
                    name == "loss" ? "'loss' is the name of StepOutput::loss, so call the one in logs "
                                   : "call one of them ",
                    "something else"));
}

}  // namespace step_runner_detail

StepRunner::StepRunner(const RunSetup& given, RunState& state, const OptimizerSet& optimizers,
                       EpochReport& epoch, CheckpointKeeper& checkpoints, const CallbackList& callbacks,
                       ShapeNames& shapes)
    : given_(given),
      state_(state),
      optimizers_(optimizers),
      epoch_(epoch),
      checkpoints_(checkpoints),
      callbacks_(callbacks),
      shapes_(shapes) {
  if (given.options.on_nan == OnNan::kSkip) skipped_.emplace(given.session, given.module);
}

BatchGroup StepRunner::next_group() const {
  const int64_t end = given_.train.batches_of(state_.data_epoch(), state_.progress.batch + 1);
  return {end - state_.batches_done(), given_.session.replicas()};
}

void StepRunner::in_step(const std::function<void()>& work) const {
  try {
    work();
  } catch (const Error& error) {
    throw_error(error.code(), base::str("step ", state_.progress.step + 1, ": ", error.what()));
  }
}

void StepRunner::run(Feed& feed) {
  Session& session = given_.session;
  BatchGroup group = next_group();
  if (skipped_) skipped_->begin_step();
  std::shared_ptr<Batch> batch;
  for (int64_t i = 0; i < group.batches(); ++i) {
    batch = feed.next();
    if (!batch)
      throw_error(Code::kDataLoss, "the training set ended before its epoch: did its shards change?");
    std::optional<Accumulate> more;
    if (i + 1 < group.batches()) more.emplace(session);
    in_step([&] { train_batch(*batch, group); });
    epoch_.rate().add(batch->count);
    if (more) session.step(std::vector<torch::optim::Optimizer*>());
  }
  NamedValues means = group.means();
  if (!logged_.empty()) in_step([&] { check_same_names(logged_, means); });
  logged_ = std::move(means);
  group.scale_gradients(given_.module);
  end_step(*batch, group.batches());
}

// An update with fewer batches than others is a separate program.
void StepRunner::end_step(const Batch& batch, int64_t batches) {
  const Steps& steps = given_.steps;
  Session& session = given_.session;
  StepOptions options = given_.clip();
  std::string boundary = shapes_.name("step", batch);
  if (batches < given_.options.accumulate) boundary += base::str(" of ", base::counted(batches, "batch"));
  torch::Tensor skipped;
  options.behind_update = [&] {
    if (skipped_ && steps.training_step) skipped_->after_update();
    if (skipped_) skipped = skipped_->end_step();
    callbacks_.call("within_step", &Callback::within_step);
    if (boundary != "step") session.sync(boundary.c_str());
  };
  const auto all = steps.updating_step ? std::vector<torch::optim::Optimizer*>() : optimizers_.all();
  if (skipped_ && steps.training_step) skipped_->before_update(logged_.front().second, all);
  session.step(all, options);
  if (skipped_) count_skipped(skipped);
}

void StepRunner::count_skipped(const torch::Tensor& skipped) {
  given_.session.after_step({skipped}, [this, alive = std::weak_ptr<char>(alive_),
                                        step = state_.progress.step +
                                               1](const std::vector<torch::Tensor>& host) {
    if (alive.expired()) return;
    if (host.front().item<double>() == 0) {
      skipped_in_a_row_ = 0;
      return;
    }
    ++state_.progress.skipped;
    if (given_.session.is_leader())
      base::warn("step ", step, ": its loss or gradients are NaN or infinite, so its update was skipped (",
                 base::counted(state_.progress.skipped, "skipped update"), " so far)");
    if (++skipped_in_a_row_ < step_runner_detail::kMaxSkipped) return;
    throw_error(
        Code::kOutOfRange,
        base::str("the last ", skipped_in_a_row_, " updates were all skipped, because their losses or ",
                  "gradients are NaN or infinite: the weights no longer change. Try a smaller --lr, ",
                  "or look for the first one with --detect-anomaly. ", checkpoints_.last_good()));
  });
}

void StepRunner::update(size_t index, const torch::Tensor& loss, const Batch& batch) {
  const c10::impl::ExcludeDispatchKeyGuard in_full_precision(c10::autocast_dispatch_keyset);
  if (index >= optimizers_.size())
    throw_error(Code::kOutOfRange, base::str("update(", index, "): there are ", optimizers_.size(),
                                             " optimizers, numbered from 0"));
  const torch::Tensor mean = mean_of("loss", loss, batch);
  check_has_gradient(mean);
  mean.backward();
  torch::optim::Optimizer& own = optimizers_.at(index);
  if (skipped_) skipped_->before_update(mean, {&own});
  given_.session.update(own, given_.clip());
  if (skipped_) skipped_->after_update();
  for (auto* other : optimizers_.all()) other->zero_grad();
}

void StepRunner::train_batch(Batch& batch, BatchGroup& group) {
  check_columns(batch);
  const Steps& steps = given_.steps;
  Session& session = given_.session;
  step_runner_detail::StepUpdates updates(
      [&](size_t index, const torch::Tensor& loss) { update(index, loss, batch); });
  StepOutput step;
  {
    std::optional<Autocast> autocast;
    if (given_.options.precision == Precision::kBf16) autocast.emplace(session.device());
    step = steps.training_step ? steps.training_step(batch) : steps.updating_step(batch, updates);
  }
  if (steps.training_step && !step.loss.defined())
    throw_error(Code::kInvalidArgument, "training_step returned no loss");
  std::optional<RowWeights> weights;
  if (step.weight.defined()) weights.emplace(step.weight, batch, session.replicas());
  const auto mean = [&](const std::string& name, const torch::Tensor& value) {
    return weights ? weights->mean(name, value) : mean_of(name, value, batch);
  };
  NamedValues values;
  if (step.loss.defined()) {
    const torch::Tensor loss = mean("loss", step.loss);
    if (steps.training_step) group.backward(loss, step.loss, weights);
    values.emplace_back("loss", loss.detach());
  }
  torch::NoGradGuard no_grad;
  if (!step.epoch_logs.empty()) epoch_.means().add(step.epoch_logs, batch, step.weight);
  for (const auto& [name, value] : step.logs) values.emplace_back(name, mean(name, value.detach()));
  if (state_.progress.step == state_.first_step) step_runner_detail::check_names(values, step.epoch_logs);
  group.add(values, weights);
}

}  // namespace sluice::train
