#include "sluice/estimate/slice_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/files/file.h"

namespace sluice::estimate {
namespace {

using ::testing::HasSubstr;

TpuSlice slice(const std::string& name) { return base::value_or_throw(find_tpu_slice(name)); }

TEST(StepBound, IsTheSlowerOfFlopsAndBytesOnOneDevice) {
  // A v3 chip has two devices: 61.5 TFLOP/s and 450 GB/s each.
  const StepBound compute = step_bound(slice("v3-32"), {61.5e12, 45e9});
  EXPECT_NEAR(compute.flops_seconds, 1, 1e-9);
  EXPECT_NEAR(compute.bytes_seconds, 0.1, 1e-9);
  EXPECT_EQ(compute.seconds(), compute.flops_seconds);
  EXPECT_STREQ(compute.limit(), "FLOPs");
  const StepBound memory = step_bound(slice("v6e-8"), {1e12, 1638e9});
  EXPECT_NEAR(memory.seconds(), 1, 1e-9);
  EXPECT_STREQ(memory.limit(), "memory");
}

TEST(EpochCost, CountsWholeStepsAndAllChips) {
  // 1001 samples at 8 × 100: two steps of half an hour on 4 chips.
  EXPECT_EQ(steps_of_epoch(8 * 100, 1600), 2);
  EXPECT_EQ(steps_of_epoch(8 * 100, 1601), 3);
  const EpochCost cost = epoch_cost(slice("v3-8"), list_prices(), 1800, steps_of_epoch(8 * 100, 1001));
  EXPECT_DOUBLE_EQ(cost.hours, 1);
  EXPECT_DOUBLE_EQ(*cost.on_demand, 4 * 2.00);
  EXPECT_DOUBLE_EQ(*cost.spot, 4 * 0.51);
  const EpochCost unknown = epoch_cost(slice("tpu7x-8"), list_prices(), 1, 1);
  EXPECT_FALSE(unknown.on_demand);
  EXPECT_FALSE(unknown.spot);
}

class PricesFile : public ::testing::Test {
 protected:
  base::Result<Prices> read(const std::string& text) {
    EXPECT_TRUE(base::write_file_atomically(path_, text));
    return read_prices(path_);
  }
  std::string error(const std::string& text) {
    const auto prices = read(text);
    return prices ? "no error" : prices.error().what();
  }
  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
  std::string path_ = folder_.path("prices.toml");
};

TEST_F(PricesFile, ReplacesWhatItNames) {
  const Prices prices =
      base::value_or_throw(read("date = \"today\"\n[v3]\nspot = 0.25\n[tpu7x]\non_demand = 12\n"));
  EXPECT_EQ(prices.date, "today");
  EXPECT_EQ(prices.of.at("v3").spot, 0.25);
  EXPECT_EQ(prices.of.at("v3").on_demand, 2.00);
  EXPECT_EQ(prices.of.at("tpu7x").on_demand, 12);
}

TEST_F(PricesFile, MistakesAreNamed) {
  EXPECT_THAT(error("[v3]\nspot = 1\n"), HasSubstr("expected date"));
  EXPECT_THAT(error("date = \"x\"\n[v8]\nspot = 1\n"), HasSubstr("unknown key v8; known: date, tpu7x, v2"));
  EXPECT_THAT(error("date = \"x\"\n[v3]\nspott = 1\n"), HasSubstr("v3.spott: expected on_demand or spot"));
  EXPECT_THAT(error("date = \"x\"\n[v3]\nspot = -1\n"), HasSubstr("US dollars"));
  EXPECT_THAT(error("date = \"x\"\nv3 = 1\n"), HasSubstr("expected a table"));
  EXPECT_THAT(error("date = \n"), HasSubstr(":1:"));
  EXPECT_FALSE(read_prices("/no/such/file.toml"));
}

// A device with room for `room` bytes; a batch needs `fixed` and `each` for every sample.
struct Device {
  double fixed, each, room;
  bool says = true;  // how much it needs
  std::vector<int64_t> tried;
  int64_t find(int64_t start, int64_t multiple = 8, int64_t limit = 65536) {
    tried.clear();
    return base::value_or_throw(largest_batch(
        [this](int64_t batch) -> base::Result<BatchFit> {
          tried.push_back(batch);
          const double needed = fixed + each * static_cast<double>(batch);
          return BatchFit{needed <= room, says ? needed : 0, says ? room : 0};
        },
        start, multiple, limit));
  }
};

TEST(LargestBatch, IsTheLastThatFits) {
  for (const bool says : {true, false}) {
    for (const double fixed : {0.0, 100.0, 5000.0}) {
      for (const double each : {0.1, 3.0, 17.0}) {
        Device device{fixed, each, 9000, says, {}};
        const int64_t exact = static_cast<int64_t>((9000 - fixed) / each) / 8 * 8;
        for (const int64_t start : {1, 8, 128, 4096}) {
          EXPECT_EQ(device.find(start), std::min<int64_t>(exact, 65536))
              << fixed << ' ' << each << ' ' << start;
          EXPECT_LE(device.tried.size(), 32u);
        }
      }
    }
  }
}

TEST(LargestBatch, TriesFewWhereMemoryIsKnown) {
  Device device{1000, 10, 16000, true, {}};
  EXPECT_EQ(device.find(128), 1496);
  EXPECT_LE(device.tried.size(), 5u);
}

TEST(LargestBatch, NoneFitsOrAllDo) {
  Device none{10, 1, 5, true, {}};
  EXPECT_EQ(none.find(128), 0);
  Device all{0, 1, 1e9, true, {}};
  EXPECT_EQ(all.find(128, 8, 1024), 1024);
  Device odd{0, 1, 1e9, true, {}};
  EXPECT_EQ(odd.find(128, 10, 1024), 1020);
}

TEST(LargestBatch, AnErrorEndsIt) {
  const auto result = largest_batch(
      [](int64_t) -> base::Result<BatchFit> { return base::fail(Code::kInternal, "broken"); }, 8, 8, 64);
  ASSERT_FALSE(result);
  EXPECT_STREQ(result.error().what(), "broken");
}

TEST(Units, AreReadable) {
  EXPECT_EQ(in_gib(16624107520.0), "15.48 GiB");
  EXPECT_EQ(in_time(0.01234), "12.3 ms");
  EXPECT_EQ(in_time(61), "61 s");
  EXPECT_EQ(in_time(600), "10.0 min");
}

}  // namespace
}  // namespace sluice::estimate
