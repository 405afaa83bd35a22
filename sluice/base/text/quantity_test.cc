#include "sluice/base/text/quantity.h"

#include <gtest/gtest.h>

#include <limits>

namespace sluice::base {
namespace {

TEST(Quantity, NumbersAreGroupedByThousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(grouped(-123456), "-123,456");
  EXPECT_EQ(grouped(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(Quantity, ThingsAreCounted) {
  EXPECT_EQ(counted(1, "sample"), "1 sample");
  EXPECT_EQ(counted(0, "sample"), "0 samples");
  EXPECT_EQ(counted(12345, "class"), "12,345 classes");
  EXPECT_EQ(counted(1, "class"), "1 class");
  EXPECT_EQ(counted(2, "try"), "2 tries");
  EXPECT_EQ(counted(2, "key"), "2 keys");
  EXPECT_EQ(plural(2, "NVIDIA GPU"), "NVIDIA GPUs");
  EXPECT_EQ(plural(5, "batch"), "batches");
  EXPECT_EQ(plural(2, "epoch"), "epochs");
}

TEST(Quantity, SizesHaveThreeDigits) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(768), "768 B");
  EXPECT_EQ(size_text(999), "999 B");
  EXPECT_EQ(size_text(1000), "1 kB");
  EXPECT_EQ(size_text(1234567), "1.23 MB");
  EXPECT_EQ(size_text(999'499), "999 kB");
  EXPECT_EQ(size_text(999'500), "1 MB");
  EXPECT_EQ(size_text(1'500'000'000), "1.5 GB");
  EXPECT_EQ(size_text(std::numeric_limits<std::uint64_t>::max()), "18447 PB");
  EXPECT_EQ(memory_text(1023), "0.999 KiB");
  EXPECT_EQ(unit_text(4.165e9, "FLOP"), "4.17 GFLOP");
  EXPECT_EQ(unit_text(999.6e9, "B"), "1 TB");
  EXPECT_EQ(unit_text(0, "FLOP"), "0 FLOP");
  EXPECT_EQ(memory_text(64 << 20), "64 MiB");
  EXPECT_EQ(memory_text(1'638'000'000), "1.53 GiB");
}

}  // namespace
}  // namespace sluice::base
