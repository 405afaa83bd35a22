#include "sluice/base/clock.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace sluice::base {
namespace {

// The expected texts are what Python 3.11 prints for str(datetime.timedelta(seconds=…)).
TEST(Clock, DurationsAsTimedelta) {
  EXPECT_EQ(duration_text(0), "0:00:00");
  EXPECT_EQ(duration_text(65), "0:01:05");
  EXPECT_EQ(duration_text(0.25), "0:00:00.250000");
  EXPECT_EQ(duration_text(3 * 3600 + 2 * 60 + 1.000001), "3:02:01.000001");
  EXPECT_EQ(duration_text(86400), "1 day, 0:00:00");
  EXPECT_EQ(duration_text(2 * 86400 + 3723.5), "2 days, 1:02:03.500000");
  EXPECT_EQ(duration_text(-1), "-1 day, 23:59:59");
  EXPECT_EQ(duration_text(-0.5), "-1 day, 23:59:59.500000");
  EXPECT_EQ(duration_text_whole(65.9), "0:01:05");
}

TEST(Clock, Spans) {
  EXPECT_EQ(parse_span("2h30m", "--ttl").value(), 9000);
  EXPECT_EQ(parse_span("1.5d", "--ttl").value(), 129600);
  EXPECT_EQ(parse_span("90", "--ttl").value(), 90);
  for (const char* wrong : {"", "0", "-1h", "2x", "soon", "1h later"})
    EXPECT_FALSE(parse_span(wrong, "--ttl")) << wrong;
}

TEST(Clock, LocalTime) {
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(local_time(0), "00:00:00");
  EXPECT_EQ(local_time(14 * 3600 + 3 * 60 + 59.9), "14:03:59");
}

TEST(Clock, StopwatchGoesForward) {
  Stopwatch watch;
  const double first = watch.seconds();
  EXPECT_GE(first, 0);
  EXPECT_GE(watch.restart(), first);
  EXPECT_GT(wall_seconds(), 1.6e9);
}

TEST(UtcTime, DropsTheFraction) {
  EXPECT_EQ(utc_time(0, "%Y-%m-%d %H:%M:%S"), "1970-01-01 00:00:00");
  EXPECT_EQ(utc_time(1'764'067'499.9, "%Y-%m-%dT%H:%M:%SZ"), "2025-11-25T10:44:59Z");
}

}  // namespace
}  // namespace sluice::base
