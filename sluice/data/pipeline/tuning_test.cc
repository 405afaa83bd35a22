#include "sluice/data/pipeline/tuning.h"

#include <gtest/gtest.h>

namespace sluice::data {
namespace {

// A second in which so many shares of it passed in each way.
Statistics after(double waiting, double decoding, double reader_idle, int decoders) {
  Statistics statistics;
  statistics.seconds = 1;
  statistics.decoders = decoders;
  statistics.consumer_waiting = waiting;
  statistics.decoder_busy = decoding * decoders;
  statistics.reader_idle = reader_idle;
  return statistics;
}

TEST(Tuning, AddsDecodersWhenTheyAreWhatIsWaitedFor) {
  const Statistics begin = after(0, 0, 0, 8);
  const auto added = [&](const Statistics& now, int most) {
    Statistics later = now;
    later.seconds = begin.seconds + 1;
    return decoders_to_add(begin, later, most);
  };
  EXPECT_EQ(added(after(0.5, 0.97, 0.9, 8), 64), 4);
  EXPECT_EQ(added(after(0.5, 0.97, 0.9, 8), 10), 2);
  EXPECT_EQ(added(after(0.5, 0.97, 0.9, 1), 4), 1);
  EXPECT_EQ(added(after(0.5, 0.97, 0.9, 8), 8), 0);
  EXPECT_EQ(added(after(0.01, 0.97, 0.9, 8), 64), 0);   // nobody waits
  EXPECT_EQ(added(after(0.5, 0.3, 0.9, 8), 64), 0);     // they have little to do
  EXPECT_EQ(added(after(0.5, 0.97, 0.001, 8), 64), 0);  // the reader is as slow
  Statistics soon = after(0.5, 0.97, 0.9, 8);
  soon.seconds = 1.2;
  EXPECT_EQ(decoders_to_add(begin, soon, 64), 0);
}

}  // namespace
}  // namespace sluice::data
