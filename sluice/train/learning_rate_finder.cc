#include "sluice/train/learning_rate_finder.h"

#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/random.h"
#include "sluice/base/text/quantity.h"
#include "sluice/session/log_line.h"
#include "sluice/train/log/value_text.h"
#include "sluice/train/loop/training.h"

namespace sluice::train {
namespace learning_rate_finder_detail {

constexpr double kKept = 0.98;  // the share of the mean of the losses that each step keeps
constexpr size_t kSkippedFirst = 10, kSkippedLast = 1;

// Collects the losses, and decides whether the sweep continues.
class Losses {
 public:
  explicit Losses(double diverged) : diverged_(diverged) {}
  // Returns false if the loss has diverged, or is NaN or infinite.
  bool add(LearningRates& into, double loss) {
    mean_ = kKept * mean_ + (1 - kKept) * loss;
    const auto count = static_cast<double>(into.smoothed.size() + 1);
    const double now = mean_ / (1 - std::pow(kKept, count));
    into.losses.push_back(loss);
    into.smoothed.push_back(now);
    if (!std::isfinite(now) || (into.smoothed.size() > 1 && now > diverged_ * least_)) return false;
    if (into.smoothed.size() == 1 || now < least_) least_ = now;
    return true;
  }

 private:
  double diverged_, mean_ = 0, least_ = 0;
};

std::string three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string table(const LearningRates& found) {
  std::string text = "learning_rate,loss,smoothed_loss\n";
  for (size_t i = 0; i < found.losses.size(); ++i)
    text += base::str(number_text(found.rates[i]), ",", number_text(found.losses[i]), ",",
                      number_text(found.smoothed[i]), "\n");
  return text;
}

}  // namespace learning_rate_finder_detail

std::optional<size_t> steepest_fall(const std::vector<double>& smoothed) {
  namespace detail = learning_rate_finder_detail;
  std::vector<size_t> places;  // with finite losses
  for (size_t i = detail::kSkippedFirst; i + detail::kSkippedLast < smoothed.size(); ++i)
    if (std::isfinite(smoothed[i])) places.push_back(i);
  if (places.size() < 2) return std::nullopt;
  // The slope is half the difference of both neighbours; at the ends, the difference to the only neighbour.
  std::optional<size_t> best;
  double steepest = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t before = i == 0 ? 0 : i - 1, behind = std::min(i + 1, places.size() - 1);
    const double slope =
        (smoothed[places[behind]] - smoothed[places[before]]) / static_cast<double>(behind - before);
    if (best && slope >= steepest) continue;
    best = places[i];
    steepest = slope;
  }
  return best;
}

namespace learning_rate_finder_detail {

// Keeps the optimizers' state from before the sweep: configure_optimizers may give the same optimizers to the
// training that follows.
class StateBefore {
 public:
  StateBefore(std::vector<torch::optim::Optimizer*> optimizers, const torch::nn::Module& model)
      : optimizers_(std::move(optimizers)), model_(model) {
    for (auto* optimizer : optimizers_) {
      auto& state = states_.emplace_back();
      for (const auto& [name, tensor] : sessions::optimizer_tensors(*optimizer, model_))
        state.emplace_back(name, tensor.detach().clone());
    }
  }
  void restore() const {
    for (size_t i = 0; i < optimizers_.size(); ++i) {
      optimizers_[i]->state().clear();
      base::value_or_throw(sessions::load_optimizer(*optimizers_[i], model_, states_[i], "before the sweep"));
    }
  }

 private:
  std::vector<torch::optim::Optimizer*> optimizers_;
  const torch::nn::Module& model_;
  std::vector<sessions::NamedTensors> states_;
};

// Makes one update; returns the loss before it.
double sweep_step(RunParts& parts, const std::function<std::shared_ptr<Batch>()>& next_batch) {
  const RunSetup& given = parts.given;
  Session& session = given.session;
  BatchGroup group(given.options.accumulate, session.replicas());
  for (int64_t i = 0; i < group.batches(); ++i) {
    auto batch = next_batch();
    if (!batch) throw_error(Code::kInvalidArgument, "the training set has no batch");
    std::optional<Accumulate> more;
    if (i + 1 < group.batches()) more.emplace(session);
    parts.steps.train_batch(*batch, group);
    if (!more) group.scale_gradients(given.module);
    session.step(parts.optimizers.all(), given.clip());
  }
  // All processes must see the loss at the same step, so each step is waited for.
  double loss = 0;
  session.after_step({group.means().front().second}, [&](const std::vector<torch::Tensor>& host) {
    loss = host.front().to(torch::kDouble).mean().item<double>();
  });
  session.finish();
  return loss;
}

void report(const LearningRates& found, RunParts& parts) {
  LogFolder& folder = parts.folder;
  const std::string file = folder.path("learning_rates.csv"), shown = folder.shown("learning_rates.csv");
  if (parts.given.session.is_leader()) {
    base::value_or_throw(base::make_directories(base::parent_path(file)));
    base::value_or_throw(base::write_file_atomically(file, table(found)));
  }
  folder.finish();
  const auto steps = static_cast<int64_t>(found.losses.size());
  const std::string range = base::str("Learning rates from ", number_text(found.rates.front()), " to ",
                                      number_text(found.rates.back()), " in ", base::counted(steps, "step"));
  const std::string rate = found.suggestion ? three_digits(*found.suggestion) : "";
  parts.log.line(found.suggestion ? base::str(range, ": the loss falls fastest at ", rate, ", so try --lr ",
                                              rate, " (", shown, ").")
                                  : base::str(range, " are too few to suggest one (", shown, ")."));
}

void check(const LearningRateSweep& sweep, const Steps& steps) {
  if (!(sweep.min > 0 && sweep.max > sweep.min && sweep.steps > 1 && sweep.diverged > 1))
    throw_error(Code::kInvalidArgument,
                base::str("a sweep of learning rates needs 0 < min < max, 2 steps or more and a factor above "
                          "1 at which it has diverged, not ",
                          sweep.min, ", ", sweep.max, ", ", sweep.steps, " and ", sweep.diverged));
  if (!steps.training_step)
    throw_error(Code::kInvalidArgument,
                "a sweep of learning rates needs a training_step: an updating_step has several losses");
}

// Trains with rising rates. Returns whether a signal came.
bool sweep_rates(RunParts& parts, const LearningRateSweep& sweep, LearningRates& found) {
  const RunSetup& given = parts.given;
  Losses losses(sweep.diverged);
  int64_t epoch = 0;
  std::optional<Feed> feed(given.train.feed(given.session, epoch, 0));
  const auto next_batch = [&] {
    auto batch = feed->next();
    if (batch) return batch;
    feed.emplace(given.train.feed(given.session, ++epoch, 0));
    return feed->next();
  };
  bool goes_on = true, stopped = false;
  for (int64_t step = 0; step < sweep.steps && goes_on && !stopped; ++step) {
    const double place = static_cast<double>(step) / static_cast<double>(sweep.steps - 1);
    found.rates.push_back(sweep.min * std::pow(sweep.max / sweep.min, place));
    parts.optimizers.set_first_rate(found.rates.back());
    torch::manual_seed(base::key({given.options.seed, static_cast<uint64_t>(step)}));
    goes_on = losses.add(found, sweep_step(parts, next_batch));
    stopped = parts.limits.agreed_halt() == Halt::kSignal;
    parts.log.console().progress("Learning rates", step + 1, sweep.steps,
                                 base::str("Loss=", sessions::fixed(found.losses.back(), 5)));
  }
  return stopped;
}

}  // namespace learning_rate_finder_detail

LearningRates sweep_learning_rates(RunSetup setup, const LearningRateSweep& sweep) {
  namespace detail = learning_rate_finder_detail;
  RunParts parts(std::move(setup));
  torch::nn::Module& module = parts.given.module;
  detail::check(sweep, parts.given.steps);
  parts.start.restore();
  parts.start.prepare(parts.callbacks, parts.optimizers);
  torch::Generator generator = at::detail::getDefaultCPUGenerator();
  const torch::Tensor random = generator.get_state();
  sessions::NamedTensors before;
  for (const auto& [name, tensor] : sessions::module_tensors(module))
    before.emplace_back(name, tensor.detach().clone());
  const detail::StateBefore state_before(parts.optimizers.all(), module);
  module.train();
  parts.epoch.begin();
  LearningRates found;
  const bool stopped = detail::sweep_rates(parts, sweep, found);
  {
    torch::NoGradGuard no_grad;
    const auto own = sessions::module_tensors(module);
    for (size_t i = 0; i < own.size(); ++i) own[i].second.copy_(before[i].second);
    state_before.restore();
  }
  generator.set_state(random);
  parts.given.session.finish();
  parts.callbacks.call("end", &Callback::end);
  if (stopped) throw_error(Code::kCancelled, "the sweep of learning rates was interrupted");
  if (const auto place = steepest_fall(found.smoothed)) found.suggestion = found.rates[*place];
  detail::report(found, parts);
  return found;
}

}  // namespace sluice::train
