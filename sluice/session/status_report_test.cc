#include "sluice/session/status_report.h"

#include <gtest/gtest.h>

namespace sluice::sessions {
namespace {

TEST(StatusReport, SaysWhereTheTimeBetweenTwoRecordsWent) {
  StatusReport::Counts begin, end;
  begin.steps = 100;
  begin.examples = 12800;
  begin.times = {50, 1, 1};
  end = begin;
  end.steps += 20;
  end.examples += 2560;
  end.epoch = 2;
  end.starving = 0.5;
  end.times.busy += 1;
  monitor::ProcessStatus status;
  describe_stretch(status, begin, end, 2);
  EXPECT_EQ(status.step, 120);
  EXPECT_EQ(status.epoch, 2);
  EXPECT_DOUBLE_EQ(status.step_ms, 100);
  EXPECT_DOUBLE_EQ(status.rate, 1280);
  ASSERT_TRUE(status.shares);
  EXPECT_DOUBLE_EQ(status.shares->input, 0.25);
  EXPECT_DOUBLE_EQ(status.shares->trace, 0.25);
  EXPECT_DOUBLE_EQ(status.shares->device, 0.5);
  // In an evaluation there are no steps, and nothing of those before is said again.
  describe_stretch(status, end, end, 2);
  EXPECT_EQ(status.step_ms, 0);
  EXPECT_EQ(status.rate, 0);
  // Nothing but compiling: there is no share.
  StatusReport::Counts compiled = end;
  compiled.times.compiling += 2;
  compiled.times.compiling_idle += 2;
  describe_stretch(status, end, compiled, 2);
  EXPECT_FALSE(status.shares);
  // Without programs.
  end.has_programs = false;
  end.starving = begin.starving + 1.5;
  describe_stretch(status, begin, end, 2);
  EXPECT_DOUBLE_EQ(status.shares->input, 0.75);
  EXPECT_DOUBLE_EQ(status.shares->device, 0.25);
}

}  // namespace
}  // namespace sluice::sessions
