#include "sluice/session/step_spans.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "sluice/base/log.h"
#include "sluice/base/process.h"
#include "sluice/base/strings.h"
#include "sluice/kernels/peaks.h"
#include "sluice/profile/host_lines.h"

namespace sluice::sessions {

void StepSpans::ask(Wish wish, int64_t steps) {
  if (wish.first < 1 || wish.end <= wish.first)
    throw_error(
        Code::kInvalidArgument,
        base::str("the steps of a profile: expected FIRST:END with 1 <= FIRST < END, such as 10:13 for "
                  "the steps 10, 11 and 12, found ",
                  wish.first, ":", wish.end));
  if (capture_)
    throw_error(Code::kFailedPrecondition, "a profile of this session is being taken; ask again after it");
  wish_ = std::move(wish);
  begin(steps);
}

void StepSpans::begin(int64_t steps) {
  if (!wish_ || capture_ || steps + 1 < wish_->first) return;
  if (steps + 1 >= wish_->end) return;  // finish() says so
  auto started = profile::Capture::start(backend_->plugin());
  if (!started) {
    base::warn("no profile of the steps ", wish_->first, ":", wish_->end, ": ", started.error().what());
    wish_.reset();
    return;
  }
  capture_.emplace(std::move(*started));
  step_began_ = base::span_clock();
}

void StepSpans::step(int64_t steps) {
  if (base::spans_are_recorded()) {
    const int64_t now = base::span_clock();
    if (step_began_ != 0) base::record_span(profile::kStepSpan, step_began_, now, {.step = steps});
    step_began_ = now;
  } else {
    step_began_ = 0;
  }
  if (!wish_) return;
  if (capture_ && steps + 1 >= wish_->end) return end(steps);
  begin(steps);
}

// Waits for the devices, so that the programs of the last step are in it.
void StepSpans::end(int64_t steps) {
  try {
    backend_->wait();
  } catch (const std::exception&) {
    // Who reads the values will say it.
  }
  const Wish wish = std::move(*wish_);
  wish_.reset();
  const profile::Captured captured = capture_->stop();
  capture_.reset();
  profile::About about;
  about.host = base::host_name();
  about.process = wish.process;
  about.processes = wish.processes;
  about.device = backend_->is_xla() ? describe_device() : "LibTorch's own CPU";
  if (!captured.kernels.calls.empty()) about.peaks = kernels::measured_peaks();
  const auto written = profile::write(captured, about, wish.folder, wish.run);
  if (!written)
    base::warn("the profile of the steps ", wish.first, ":", wish.end, " is lost: ", written.error().what());
  else if (wish.process == 0)
    base::info("profile of the steps ", wish.first, " to ", std::min(wish.end - 1, steps), ": ", *written,
               "; tensorboard --logdir ", wish.folder, " shows it, and the .txt says it in words");
}

void StepSpans::finish(int64_t steps) {
  if (capture_ && steps >= wish_->first) return end(steps);
  capture_.reset();
  if (!wish_) return;
  base::warn("no step was profiled: the steps ", wish_->first, ":", wish_->end, " were asked for, and ",
             steps, steps == 1 ? " step was made" : " steps were made");
  wish_.reset();
}

}  // namespace sluice::sessions
