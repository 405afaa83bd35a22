// Sums of parts in zeros: how many operations remain. tests/device compares their values with LibTorch's.
#include <gtest/gtest.h>

#include <functional>

#include "sluice/patterns/patterns.h"
#include "sluice/patterns/testing/counting.h"

namespace sluice::patterns {
namespace {

using stablehlo::Builder;
using stablehlo::Dims;
using stablehlo::DType;
using stablehlo::Type;
using stablehlo::Value;
using stablehlo::Values;

// The program of the sum of these terms, one after the other.
std::string sum_text(const std::function<Values(Builder&)>& terms) {
  Builder b;
  Value sum;
  for (const Value term : terms(b)) sum = sum ? b.add(sum, term) : term;
  return b.finish(rewrite(b, {sum}, {}, nullptr), {});
}

Value part_of_sum(Builder& b, const Dims& box, const Dims& low, const Dims& dims) {
  Dims high = dims;
  for (size_t d = 0; d < dims.size(); ++d) high[d] -= low[d] + box[d];
  return b.pad(b.parameter({DType::kF32, box}), b.splat(0, Type{DType::kF32, {}}), low, high);
}

// N different rows, in an order of their own.
std::string rows_text(int64_t n) {
  return sum_text([&](Builder& b) {
    Values terms;
    for (int64_t i = 0; i < n; ++i) terms.push_back(part_of_sum(b, {1, 4}, {i * 7 % n, 0}, {n, 4}));
    return terms;
  });
}

TEST(SumOfParts, RowsBecomeOneConcatenation) {
  for (const int64_t n : {8, 100, 1000}) {
    const std::string text = rows_text(n);
    EXPECT_EQ(times_in(text, "\"stablehlo."), 1u) << n;
    EXPECT_EQ(times_in(text, "\"stablehlo.concatenate\""), 1u) << n;
  }
}

TEST(SumOfParts, AFewStayAsTheyAre) {
  const std::string text = rows_text(6);
  EXPECT_EQ(times_in(text, "\"stablehlo.pad\""), 6u);
  EXPECT_EQ(times_in(text, "\"stablehlo.add\""), 5u);
}

TEST(SumOfParts, GapsAreZeros) {
  const std::string text = sum_text([](Builder& b) {
    Values terms;
    for (int64_t i = 0; i < 10; ++i) terms.push_back(part_of_sum(b, {4}, {2 + 10 * i}, {200}));
    return terms;
  });
  EXPECT_EQ(times_in(text, "\"stablehlo.add\""), 0u);
  EXPECT_EQ(times_in(text, "\"stablehlo.concatenate\""), 1u);
  // Two at the front, six between two parts, and those at the end.
  EXPECT_EQ(times_in(text, "\"stablehlo.constant\""), 3u);
}

// The gradients of x[i][j] for all i and j: a padding in a padding, with dimensions that a reshape adds.
TEST(SumOfParts, ElementsOfRowsAreJoinedInTheirRows) {
  for (const int64_t n : {4, 30}) {
    const std::string text = sum_text([&](Builder& b) {
      const Value zero = b.splat(0, Type{DType::kF32, {}});
      Values terms;
      for (int64_t k = 0; k < n * n; ++k) {
        const int64_t i = k % n, j = k / n;
        const Value one = b.reshape(b.parameter({DType::kF32, {}}), {1});
        const Value row = b.reshape(b.pad(one, zero, {j}, {n - 1 - j}), {1, n});
        terms.push_back(b.pad(row, zero, {i, 0}, {n - 1 - i, 0}));
      }
      return terms;
    });
    EXPECT_EQ(times_in(text, "\"stablehlo.add\""), 0u);
    EXPECT_EQ(times_in(text, "\"stablehlo.pad\""), 0u);
    EXPECT_EQ(times_in(text, "\"stablehlo.concatenate\""), static_cast<size_t>(n + 1));
    EXPECT_EQ(times_in(text, "\"stablehlo.reshape\""), static_cast<size_t>(2 * n * n));
  }
}

TEST(SumOfParts, EqualPartsAreAddedFirst) {
  const std::string text = sum_text([](Builder& b) {
    Values terms;
    for (int64_t i = 0; i < 12; ++i) terms.push_back(part_of_sum(b, {1, 5}, {i % 3, 0}, {3, 5}));
    return terms;
  });
  EXPECT_EQ(times_in(text, "\"stablehlo.add\""), 9u);
  EXPECT_EQ(times_in(text, "(tensor<1x5xf32>, tensor<1x5xf32>) -> tensor<1x5xf32>"), 9u);
  EXPECT_EQ(times_in(text, "\"stablehlo.concatenate\""), 1u);
}

// Windows of four with a step of one: four sums of windows that lie next to each other.
TEST(SumOfParts, WindowsThatOverlapAreLayers) {
  for (const int64_t n : {40, 400}) {
    const std::string text = sum_text([&](Builder& b) {
      Values terms;
      for (int64_t i = 0; i + 4 <= n; ++i) terms.push_back(part_of_sum(b, {4}, {i}, {n}));
      return terms;
    });
    EXPECT_EQ(times_in(text, "\"stablehlo.concatenate\""), 4u) << n;
    EXPECT_EQ(times_in(text, "\"stablehlo.add\""), 3u) << n;
    EXPECT_EQ(times_in(text, "\"stablehlo.pad\""), 0u) << n;
  }
}

TEST(SumOfParts, AWholeTermIsAddedToTheJoinedOnes) {
  const std::string text = sum_text([](Builder& b) {
    Values terms;
    for (int64_t i = 0; i < 20; ++i) {
      if (i == 10) terms.push_back(b.parameter({DType::kF32, {20, 2}}));
      terms.push_back(part_of_sum(b, {1, 2}, {i, 0}, {20, 2}));
    }
    return terms;
  });
  EXPECT_EQ(times_in(text, "\"stablehlo.add\""), 2u);
  EXPECT_EQ(times_in(text, "\"stablehlo.concatenate\""), 2u);
}

TEST(SumOfParts, OtherNumbersAroundAPartStay) {
  const std::string text = sum_text([](Builder& b) {
    Values terms;
    const Value one = b.splat(1.0, Type{DType::kF32, {}});
    for (int64_t i = 0; i < 20; ++i)
      terms.push_back(b.pad(b.parameter({DType::kF32, {1}}), one, {i}, {19 - i}));
    return terms;
  });
  EXPECT_EQ(times_in(text, "\"stablehlo.add\""), 19u);
}

// A sum up to the middle that something else reads remains a value of the program.
TEST(SumOfParts, ASumThatIsReadParts) {
  Builder b;
  Values sums;
  Value sum;
  for (int64_t i = 0; i < 40; ++i) {
    const Value next = part_of_sum(b, {1}, {i}, {40});
    sum = sum ? b.add(sum, next) : next;
    if (i == 19 || i == 39) sums.push_back(sum);
  }
  const Values results = rewrite(b, sums, {}, nullptr);
  const std::string text = b.finish(results, {});
  EXPECT_EQ(times_in(text, "\"stablehlo.concatenate\""), 2u);
  EXPECT_EQ(times_in(text, "\"stablehlo.add\""), 1u);
}

}  // namespace
}  // namespace sluice::patterns
