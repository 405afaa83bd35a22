#include "sluice/train/batch_size_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/error.h"

namespace sluice::train {
namespace {

using ::testing::HasSubstr;

std::vector<int64_t> sizes_of(const BatchSizes& found) {
  std::vector<int64_t> sizes;
  for (const BatchSizeTrial& trial : found.trials) sizes.push_back(trial.batch_size);
  return sizes;
}

TEST(BatchSizes, EndWhereLargerOnesAreNoFaster) {
  const auto found = find_batch_sizes({.first = 8}, [](int64_t size) {
    return BatchSizeTrial{size, 1000.0 * static_cast<double>(size) / static_cast<double>(size + 16)};
  });
  // 333, 500, 667, 800, 889, 941, 970, 985: the last two are less than 5 % faster than 941.
  EXPECT_EQ(sizes_of(found), (std::vector<int64_t>{8, 16, 32, 64, 128, 256, 512, 1024}));
  EXPECT_EQ(found.suggestion, 256);
  EXPECT_THAT(found.end, HasSubstr("no faster"));
}

TEST(BatchSizes, EndWhereTheyDoNotFit) {
  const auto attempt = [](int64_t size) {
    if (size > 48) throw_error(Code::kResourceExhausted, "the step needs 20 GiB of 16");
    return BatchSizeTrial{size, static_cast<double>(size)};
  };
  const auto found = find_batch_sizes({.first = 12}, attempt);
  EXPECT_EQ(sizes_of(found), (std::vector<int64_t>{12, 24, 48}));
  EXPECT_EQ(found.suggestion, 48);
  EXPECT_EQ(found.end, "96 do not go: the step needs 20 GiB of 16");
  EXPECT_THROW(find_batch_sizes({.first = 64}, attempt), Error) << "not even the first one";
  EXPECT_EQ(sizes_of(find_batch_sizes({.first = 12, .largest = 24}, attempt)),
            (std::vector<int64_t>{12, 24}));
}

// A machine's memory is not tried out: it may end more than this process.
TEST(BatchSizes, EndBeforeMemoryDoes) {
  const int64_t mib = 1 << 20;
  const auto found = find_batch_sizes({.first = 4}, [&](int64_t size) {
    return BatchSizeTrial{size, static_cast<double>(size), (100 + 10 * size) * mib, 1000 * mib};
  });
  EXPECT_EQ(sizes_of(found), (std::vector<int64_t>{4, 8, 16, 32, 64}));
  EXPECT_EQ(found.end, "128 would need about 1.35 GiB of 0.977 GiB");
}

TEST(BatchSizes, PassOtherErrorsOn) {
  EXPECT_THROW(find_batch_sizes({.first = 4},
                                [](int64_t size) -> BatchSizeTrial {
                                  if (size > 4) throw_error(Code::kDataLoss, "a shard is gone");
                                  return {size, 1};
                                }),
               Error);
  EXPECT_THROW(find_batch_sizes({.first = 0}, [](int64_t size) { return BatchSizeTrial{size, 1}; }), Error);
}

}  // namespace
}  // namespace sluice::train
