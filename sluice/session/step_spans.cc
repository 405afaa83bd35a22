#include "sluice/session/step_spans.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "sluice/base/log.h"
#include "sluice/base/process.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/thread.h"
#include "sluice/cloud/store.h"
#include "sluice/profile/host_lines.h"
#include "sluice/session/rates/device_peak.h"

namespace sluice::sessions {

void StepSpans::ask(Wish wish, int64_t steps) {
  if (wish.first < 1 || wish.end <= wish.first)
    throw_error(
        Code::kInvalidArgument,
        base::str("the steps of a profile: expected FIRST:END with 1 <= FIRST < END, such as 10:13 for "
                  "the steps 10, 11 and 12, found ",
                  wish.first, ":", wish.end));
  if (capture_ && !of_request_)
    throw_error(Code::kFailedPrecondition, "a profile of this session is being taken; ask again after it");
  wish_ = std::move(wish);
  begin(steps);
}

StepSpans::~StepSpans() {
  if (request_) request_->answer(base::fail(Code::kAborted, "the training ended with an error"));
  if (upload_.joinable()) upload_.join();
}

void StepSpans::begin(int64_t steps) {
  if (!wish_ || capture_ || steps + 1 < wish_->first) return;
  if (steps + 1 >= wish_->end) return;  // finish() reports it
  if (const auto started = start_capture(); !started) {
    base::warn("no profile of the steps ", wish_->first, ":", wish_->end, ": ", started.error().what());
    wish_.reset();
  }
}

void StepSpans::begin_request(int64_t steps) {
  if (request_ == nullptr && (request_ = requests_->take()) == nullptr) return;
  if (steps + 1 < request_->steps.first && !request_->is_cancelled()) return;
  const auto refuse = [&](base::Result<profile::Captured> why) {
    request_->answer(std::move(why));
    request_.reset();
  };
  if (request_->is_cancelled()) return refuse(base::fail(Code::kCancelled, "nobody waits for it"));
  if (steps + 1 > request_->steps.first)
    return refuse(base::fail(Code::kFailedPrecondition, "the step ", request_->steps.first,
                             " has begun already: ", steps, " are done"));
  if (auto started = start_capture(); !started) return refuse(tl::unexpected<Error>(started.error()));
  of_request_ = true;
}

base::Status StepSpans::start_capture() {
  wait();
  SLUICE_TRY(auto started, profile::Capture::start(backend_->plugin()));
  capture_.emplace(std::move(started));
  step_began_ = base::span_clock();
  return {};
}

// Waits for the devices, so that a profile has the programs of its steps, and lasts as long as its steps
// together.
void StepSpans::wait() const {
  try {
    backend_->wait();
  } catch (const std::exception&) {
    // The error is reported to whoever reads the values.
  }
}

profile::Captured StepSpans::stop_capture() {
  wait();
  profile::Captured captured = capture_->stop();
  capture_.reset();
  return captured;
}

void StepSpans::step(int64_t steps) {
  const bool is_last = capture_ && (of_request_ ? steps + 1 >= request_->steps.end || request_->is_cancelled()
                                                : steps + 1 >= wish_->end);
  if (is_last) wait();
  if (base::spans_are_recorded()) {
    const int64_t now = base::span_clock();
    if (step_began_ != 0) base::record_span(profile::kStepSpan, step_began_, now, {.step = steps});
    step_began_ = now;
  } else {
    step_began_ = 0;
  }
  if (requests_ != nullptr) requests_->step(steps);
  if (is_last && of_request_)
    end_request();
  else if (is_last)
    end(steps);
  if (capture_) return;
  if (wish_) begin(steps);
  if (requests_ != nullptr && !capture_) begin_request(steps);
}

void StepSpans::end_request() {
  of_request_ = false;
  std::exchange(request_, nullptr)->answer(stop_capture());
}

void StepSpans::end(int64_t steps) {
  const Wish wish = std::move(*wish_);
  wish_.reset();
  profile::Captured captured = stop_capture();
  if (!cloud::is_object_url(wish.folder)) return write(wish, captured, steps);
  // The training does not wait for the bucket.
  if (upload_.joinable()) upload_.join();
  upload_ = std::thread([this, wish, captured = std::move(captured), steps] {
    base::name_thread("sluice-profile");
    write(wish, captured, steps);
  });
}

void StepSpans::write(const Wish& wish, const profile::Captured& captured, int64_t steps) const {
  const auto written = profile::write(captured, wish.about, wish.folder, wish.run);
  if (!written)
    base::warn("the profile of the steps ", wish.first, ":", wish.end, " is lost: ", written.error().what());
  else if (wish.about.process == 0)
    base::info("profile of the steps ", wish.first, " to ", std::min(wish.end - 1, steps), ": ", *written,
               "; tensorboard --logdir ", wish.folder, " shows it, and the .txt file is its summary");
}

void StepSpans::finish(int64_t steps) {
  if (request_ && of_request_) {
    end_request();
  } else if (request_) {
    request_->answer(base::fail(Code::kOutOfRange, "the training has ended, at step ", steps,
                                ", before the step ", request_->steps.first));
    request_.reset();
  }
  if (requests_ != nullptr) requests_->end();
  if (capture_ && steps >= wish_->first) {
    end(steps);
  } else if (wish_) {
    capture_.reset();
    base::warn("no step was profiled: the steps ", wish_->first, ":", wish_->end, " were asked for, and ",
               base::counted(steps, "step"), steps == 1 ? " was made" : " were made");
    wish_.reset();
  }
  if (upload_.joinable()) upload_.join();
}

profile::About describe_process(const Backend& backend, int process, int processes) {
  profile::About about;
  about.host = base::host_name();
  about.process = process;
  about.processes = processes;
  about.device = backend.is_xla() ? describe_device() : "LibTorch's own CPU";
  if (backend.is_xla()) about.peaks = call_peaks();
  return about;
}

}  // namespace sluice::sessions
