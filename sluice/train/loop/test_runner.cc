#include "sluice/train/loop/test_runner.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/session/ahead/ahead_program.h"
#include "sluice/train/evaluation/confusion.h"
#include "sluice/train/evaluation/evaluate.h"
#include "sluice/train/evaluation/test_images.h"
#include "sluice/train/log/value_text.h"

namespace sluice::train {

bool TestRunner::is_due(bool last) const {
  const sessions::Progress& progress = state_.progress;
  if (given_.test == nullptr || progress.tested == progress.step) return false;
  return last || progress.epoch == given_.options.epochs ||
         progress.epoch % given_.options.test_every_epochs == 0;
}

void TestRunner::judge(const metrics::Values& values) {
  const Monitor& monitor = given_.steps.monitor;
  sessions::Progress& progress = state_.progress;
  const metrics::Value& value = values.value(monitor.name);
  const double now = shown(value);
  if (std::isnan(now)) {
    progress.value.reset();
    base::warn("the ", monitor.name, " of the test is NaN: these weights are not kept as the best");
    return;
  }
  progress.value = now;
  if (!progress.best || monitor.is_better(now, *progress.best)) progress.best = now;
}

std::optional<metrics::Values> TestRunner::measure(const Input& set, const std::string& name) {
  const TrainOptions& options = given_.options;
  Session& session = given_.session;
  TestImages images(options.log_images, options.mean, options.deviation);
  std::function<void(const Batch&, const StepOutput&)> look;
  if (options.log_images > 0 && name.empty())
    look = [&](const Batch& batch, const StepOutput& step) { images.look(session, batch, step); };
  Evaluation test = evaluate(
      session, given_.steps, set.feed(session, 0, 0), set.batches(), options.precision == Precision::kBf16,
      [this] { return limits_.stops_alone(); },
      [&](int64_t done) {
        if (done == std::min<int64_t>(2, set.batches()) && sessions::steps_are_recorded())
          sessions::end_recording();  // the next batches have the program of the second one
        log_.console().progress(name.empty() ? "Test " : base::str("Test ", name, " "), done, set.batches(),
                                "");
      },
      look);
  if (test.stopped) return std::nullopt;
  const int64_t step = state_.progress.step;
  if (look && log_.metrics() != nullptr && !log_.metrics()->has_test(step))
    images.write(log_.metrics()->events(), set.class_names(), step);
  log_.line(base::str("Epoch ", state_.shown_epoch(), " test ", name, name.empty() ? "" : " ", "end ",
                      base::local_time(), ", Samples=", test.samples, line_of(test.values)));
  return std::move(test.values);
}

bool TestRunner::run() {
  sessions::Progress& progress = state_.progress;
  given_.module.eval();
  callbacks_.call("before_reading", &Callback::before_reading);
  Measurement row;
  row.split = "test";
  row.epoch = state_.shown_epoch();
  row.step = progress.step;
  std::optional<metrics::Values> values = measure(*given_.test, "");
  if (values) put_into(row, *values);
  for (const NamedTest& more : given_.more_tests) {
    const auto found = values ? measure(more.input, more.name) : std::nullopt;
    if (!found) values.reset();
    if (values) put_into(row, *values, *found, more.name);
  }
  callbacks_.call("after_reading", &Callback::after_reading);
  if (!values) return false;
  if (values_.numbers.empty())
    for (const auto& value : values->numbers) base::value_or_throw(check_name(value.name));
  judge(*values);
  log_.write(row);
  values_ = *values;
  progress.tested = progress.step;
  progress.due.test = false;
  callbacks_.after_test(values_);
  for (const auto& [name, matrix] : values->tensors) write_matrix(matrix, row);
  return true;
}

void TestRunner::write_matrix(const torch::Tensor& matrix, const Measurement& row) {
  if (log_.metrics() == nullptr) return;
  base::value_or_throw(
      write_confusion(log_.metrics()->folder(), matrix, given_.test->class_names(), row.epoch, row.step));
  const std::string note = confusion_note(matrix);
  if (!note.empty() && !std::exchange(noted_pairs_, true)) log_.line(note);
}

}  // namespace sluice::train
