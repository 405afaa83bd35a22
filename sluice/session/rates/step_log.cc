#include "sluice/session/rates/step_log.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace sluice::sessions {
namespace {

// How much later than a step's values the report of its end may arrive.
constexpr std::chrono::seconds kPatience(1);

// The smallest of the durations, in ascending order, that `percent` percent of them do not exceed.
double percentile(const std::vector<double>& sorted, int percent) {
  return sorted[(sorted.size() * static_cast<size_t>(percent) + 99) / 100 - 1];
}

}  // namespace

struct StepLog::Ends {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::optional<double>> times;
  int64_t first = 0;  // the step that times.front() belongs to
};

StepLog::StepLog() : ends_(std::make_shared<Ends>()) {}

StepLog::End StepLog::step(const StepWork& work, bool counts) {
  kept_.push_back({work, begin_, counts, std::nullopt});
  begin_ = 0;
  {
    const std::scoped_lock lock(ends_->mutex);
    ends_->times.emplace_back();
  }
  const int64_t number = next_++;
  if (static_cast<int64_t>(kept_.size()) > kKept) {
    settle(std::nullopt);
    kept_.pop_front();
  }
  return [ends = ends_, number](double now) {
    const std::scoped_lock lock(ends->mutex);
    if (number < ends->first) return;
    ends->times[static_cast<size_t>(number - ends->first)] = now;
    ends->changed.notify_all();
  };
}

// Takes the ends that have been reported, in the order of the steps.
void StepLog::settle(std::optional<int64_t> until) {
  std::unique_lock lock(ends_->mutex);
  if (until)
    ends_->changed.wait_for(lock, kPatience, [&] {
      const auto end = ends_->times.begin() + std::clamp<int64_t>(*until - settled_, 0, next_ - settled_);
      return std::all_of(ends_->times.begin(), end, [](const auto& time) { return time.has_value(); });
    });
  const int64_t first_kept = next_ - static_cast<int64_t>(kept_.size());
  while (!ends_->times.empty() && ends_->times.front()) {
    const double end = std::max(last_end_, *ends_->times.front());
    if (settled_ >= first_kept) {
      Step& step = kept_[static_cast<size_t>(settled_ - first_kept)];
      const double begin = std::max(step.begin, last_end_);
      if (begin > 0 && step.counts) step.seconds = std::max(0.0, end - begin);
    }
    last_end_ = end;
    ++settled_;
    ends_->times.pop_front();
    ++ends_->first;
  }
}

StepWindow StepLog::take(Reader& reader, std::optional<int64_t> until) {
  settle(until);
  const int64_t end = std::min(until.value_or(settled_), settled_);
  const int64_t first_kept = next_ - static_cast<int64_t>(kept_.size());
  StepWindow window;
  window.work.flops.emplace();
  std::vector<double> durations;
  for (int64_t i = std::max(reader.next, first_kept); i < end; ++i) {
    const Step& step = kept_[static_cast<size_t>(i - first_kept)];
    if (!step.seconds) continue;
    durations.push_back(*step.seconds);
    window.seconds += *step.seconds;
    window.work.examples += step.work.examples;
    window.work.tokens += step.work.tokens;
    window.work.starving += step.work.starving;
    if (!step.work.flops)
      window.work.flops.reset();
    else if (window.work.flops)
      *window.work.flops += *step.work.flops;
  }
  reader.next = std::max(reader.next, end);
  window.steps = static_cast<int64_t>(durations.size());
  if (durations.empty()) return window;
  std::sort(durations.begin(), durations.end());
  window.p50 = percentile(durations, 50);
  window.p95 = percentile(durations, 95);
  return window;
}

}  // namespace sluice::sessions
