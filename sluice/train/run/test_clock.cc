#include "sluice/train/run/test_clock.h"

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"

namespace sluice::train {

void TestClock::begin(Run& run) {
  since_.restart();
  session_step_ = run.session().steps();
}

void TestClock::after_test(Run& run, const metrics::Values& /*values*/) {
  earlier_ = 0;
  since_.restart();
  session_step_ = run.session().steps();
}

std::string TestClock::state() const { return base::str(seconds()); }

void TestClock::load(const std::string& state) {
  const auto seconds = base::number_of<double>(state);
  if (!seconds || !(*seconds >= 0))
    throw_error(Code::kDataLoss, base::str("expected the seconds since the last test, found '", state, "'"));
  earlier_ = *seconds;
}

}  // namespace sluice::train
