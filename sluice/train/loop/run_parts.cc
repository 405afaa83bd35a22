#include "sluice/train/loop/run_parts.h"

#include <utility>

namespace sluice::train {
namespace run_parts_detail {

std::shared_ptr<TestClock> test_clock(const RunSetup& setup) {
  const bool is_wanted = setup.test != nullptr && setup.options.test_every_minutes > 0;
  return is_wanted ? std::make_shared<TestClock>() : nullptr;
}

RunSetup with(RunSetup setup, const std::shared_ptr<TestClock>& clock) {
  if (clock) setup.callbacks.push_back(clock);
  return setup;
}

}  // namespace run_parts_detail

RunParts::RunParts(RunSetup setup)
    : test_clock(run_parts_detail::test_clock(setup)),
      given(run_parts_detail::with(std::move(setup), test_clock)),
      plan(plan_run(given.train, given.options)),
      state(given),
      limits(given, state, test_clock.get()),
      folder(given.options, given.session.is_leader()),
      log(given, state),
      shapes(/*all=*/given.options.find_batch_size),
      view(given, plan, state, limits, shapes, log),
      callbacks(given.callbacks, view),
      optimizers(given.session),
      start(given, state, folder, log.console()),
      checkpoints(given, state, folder, callbacks, optimizers),
      tests(given, state, limits, callbacks, log),
      epoch(given, state, log),
      report(given, state, checkpoints, log),
      steps(given, state, optimizers, epoch, checkpoints, callbacks, shapes) {}

// From here on a signal ends the process, even if a checkpoint is still being written.
RunParts::~RunParts() { signals.reset(); }

}  // namespace sluice::train
