#include "sluice/stablehlo/live_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/stablehlo/builder.h"

namespace sluice::stablehlo {
namespace {

using ::testing::HasSubstr;

const Type kVector{DType::kF32, {256}};  // 1 KiB

MemoryEstimate estimate(Builder& b, std::vector<Value> results, std::vector<Donation> donations = {}) {
  return base::value_or_throw(estimate_memory(b.finish(results, donations, 1, "test")));
}

TEST(LiveRanges, ValuesDieAfterTheirLastUse) {
  Builder b;
  Value x = b.parameter(kVector);
  b.set_location("a/aten::tanh");
  for (int i = 0; i < 5; ++i) x = b.tanh(x);
  // The argument, and two of the chain at a time.
  const auto found = estimate(b, {x});
  EXPECT_EQ(found.peak_bytes, 3 * 1024);
  EXPECT_EQ(found.largest.size(), 3u);
  EXPECT_EQ(found.largest[0].operation, "argument");
  EXPECT_EQ(found.largest[0].location, "a/aten::tanh");
  EXPECT_EQ(found.largest[1].type, "tensor<256xf32>");
}

TEST(LiveRanges, WhatIsUsedLaterLivesUntilThen) {
  Builder b;
  const Value x = b.parameter(kVector);
  b.set_location("conv1.weight/aten::tanh");
  const Value kept = b.tanh(x);
  b.set_location("other");
  Value y = b.parameter({DType::kBF16, {256}});  // 512 bytes
  for (int i = 0; i < 4; ++i) y = b.tanh(y);
  const Value sum = b.add(kept, b.convert(y, DType::kF32));
  const auto found = estimate(b, {sum});
  EXPECT_EQ(found.peak_bytes, 1024 + 512 + 1024 + 1024 + 1024);  // x, y, kept, converted, sum
  EXPECT_EQ(found.peak_location, "other");
  EXPECT_EQ(found.largest[1].location, "conv1.weight/aten::tanh");
  // The arguments apart, by the layer that made it.
  EXPECT_EQ(found.argument_bytes, 1024 + 512);
  EXPECT_EQ(found.by_layer, (std::map<std::string, int64_t>{{"conv1", 1024}, {"", 2 * 1024}}));
}

TEST(LiveRanges, DonatedMemoryIsCountedOnce) {
  for (const bool donated : {false, true}) {
    Builder b;
    const Value x = b.parameter(kVector);
    const Value y = b.tanh(x);
    const auto found =
        estimate(b, {y}, {{donated ? Donation::Kind::kAliasOutput : Donation::Kind::kNone, 0}});
    EXPECT_EQ(found.peak_bytes, donated ? 1024 : 2048);
  }
}

TEST(LiveRanges, BroadcastsAndReshapesAreNotStored) {
  Builder b;
  const Value x = b.parameter(kVector);
  const Value wide = b.splat(2, kVector);
  const Value square = b.reshape(b.multiply(x, wide), {16, 16});
  const Value back = b.tanh(b.reshape(square, {256}));
  EXPECT_EQ(estimate(b, {back}).peak_bytes, 3 * 1024);  // x, the product, its tanh
}

TEST(LiveRanges, WhatABarrierHoldsIsTheSameMemory) {
  Builder b;
  const Value x = b.parameter(kVector);
  const Value both[] = {b.tanh(x), b.negate(x)};
  const Values held = b.optimization_barrier(both);
  EXPECT_EQ(estimate(b, {b.add(held[0], held[1])}).peak_bytes, 4 * 1024);  // x, both, their sum
}

TEST(LiveRanges, RegionsAndTheirResults) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {8, 256}});
  const Value zero = b.splat(0, {DType::kF32, {}});
  b.set_location("sum");
  const Values sums =
      b.reduce(std::vector<Value>{x}, std::vector<Value>{zero}, {0},
               [](Builder& inner, std::span<const Value> v) { return Values{inner.add(v[0], v[1])}; });
  const auto found = estimate(b, {b.tanh(sums[0])});
  EXPECT_EQ(found.peak_bytes, 8 * 1024 + 2 * 1024);
  EXPECT_EQ(found.largest[1].operation, "stablehlo.reduce");
  EXPECT_EQ(found.largest[1].location, "sum");
}

TEST(LiveRanges, TheLargestFirstAndNoMoreThanAsked) {
  Builder b;
  std::vector<Value> all;
  for (int64_t n = 1; n <= 5; ++n) all.push_back(b.parameter({DType::kPred, {n * 10}}));
  const std::string text = b.finish(all, {}, 1, "test");
  const auto found = base::value_or_throw(estimate_memory(text, 2));
  EXPECT_EQ(found.peak_bytes, 150);
  ASSERT_EQ(found.largest.size(), 2u);
  EXPECT_EQ(found.largest[0].bytes, 50);
  EXPECT_EQ(found.largest[1].bytes, 40);
}

TEST(LiveRanges, OtherTextIsRefused) {
  for (const char* text : {"", "module {}\n", "no program"}) {
    const auto found = estimate_memory(text);
    ASSERT_FALSE(found);
    EXPECT_THAT(found.error().what(), HasSubstr("@main"));
  }
}

}  // namespace
}  // namespace sluice::stablehlo
