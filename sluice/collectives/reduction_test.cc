#include "sluice/collectives/reduction.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace sluice::collectives {
namespace {

using stablehlo::DType;

template <typename T>
std::vector<T> run(DType dtype, Reduction reduction, const std::vector<std::vector<T>>& inputs) {
  std::vector<const void*> in;
  for (const auto& input : inputs) in.push_back(input.data());
  std::vector<T> a(inputs[0].size()), b(inputs[0].size());
  void* out[] = {a.data(), b.data()};
  reduce(dtype, reduction, in, out, a.size());
  EXPECT_TRUE(a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
  return a;
}

template <typename T>
T plain(Reduction reduction, T a, T b) {
  if (reduction == Reduction::kMax) return a > b ? a : b;
  if (reduction == Reduction::kMin) return a < b ? a : b;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

// Lengths around the size of a block; the numbers of integers wrap around.
template <typename T>
void compare_with_a_loop(DType dtype) {
  std::mt19937_64 random(7);
  for (size_t elements : {size_t{0}, size_t{1}, size_t{1023}, size_t{1024}, size_t{2500}}) {
    for (size_t replicas : {1u, 2u, 3u, 5u}) {
      std::vector<std::vector<T>> inputs(replicas, std::vector<T>(elements));
      for (auto& input : inputs) {
        for (T& x : input) x = static_cast<T>(static_cast<int64_t>(random()));
      }
      for (Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
        const auto got = run(dtype, reduction, inputs);
        for (size_t k = 0; k < elements; ++k) {
          T expected = inputs[0][k];
          for (size_t r = 1; r < replicas; ++r) expected = plain(reduction, expected, inputs[r][k]);
          ASSERT_EQ(got[k], expected) << reduction_name(reduction) << " " << k << " of " << elements;
        }
      }
    }
  }
}

TEST(Reduce, NumbersAsALoopGivesThem) {
  compare_with_a_loop<float>(DType::kF32);
  compare_with_a_loop<double>(DType::kF64);
  compare_with_a_loop<int8_t>(DType::kS8);
  compare_with_a_loop<int16_t>(DType::kS16);
  compare_with_a_loop<int32_t>(DType::kS32);
  compare_with_a_loop<int64_t>(DType::kS64);
  compare_with_a_loop<uint8_t>(DType::kU8);
  compare_with_a_loop<uint16_t>(DType::kU16);
  compare_with_a_loop<uint32_t>(DType::kU32);
  compare_with_a_loop<uint64_t>(DType::kU64);
}

// 1 + 2^-8 + 2^-8: each addend alone is lost in bf16 (8 bits), their sum is not.
TEST(Reduce, HalfPrecisionIsRoundedOnce) {
  const auto bf16 = [](float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); };
  const float small = std::ldexp(1.0f, -8);
  const std::vector<std::vector<uint16_t>> inputs = {
      {bf16(1), bf16(1)}, {bf16(small), bf16(small)}, {bf16(small), bf16(0)}};
  const auto got = run(DType::kBF16, Reduction::kSum, inputs);
  EXPECT_EQ(got[0], bf16(1 + 2 * small));
  EXPECT_EQ(got[1], bf16(1));  // a tie: to even
  // The same with 11 bits: 1.0 is 0x3C00, 2^-11 is 0x1000.
  const auto half = run(DType::kF16, Reduction::kSum,
                        std::vector<std::vector<uint16_t>>{{0x3C00, 0x3C00}, {0x1000, 0x1000}, {0x1000, 0}});
  EXPECT_EQ(half[0], 0x3C01);
  EXPECT_EQ(half[1], 0x3C00);
  EXPECT_EQ(run(DType::kF16, Reduction::kMax, std::vector<std::vector<uint16_t>>{{0xBC00}, {0x3C00}})[0],
            0x3C00);
  EXPECT_EQ(run(DType::kF16, Reduction::kSum, std::vector<std::vector<uint16_t>>{{0x7BFF}, {0x7BFF}})[0],
            0x7C00);
}

TEST(Reduce, ANotANumberWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
    for (float x : run<float>(DType::kF32, reduction, {{nan, 1, 1}, {1, nan, 1}, {2, 2, nan}})) {
      EXPECT_TRUE(std::isnan(x));
    }
    const auto bf16 = run<uint16_t>(DType::kBF16, reduction, {{0x7FC1, 0x7F81}, {0x3F80, 0x3F80}});
    for (uint16_t bits : bf16) EXPECT_TRUE((bits & 0x7F80) == 0x7F80 && (bits & 0x7F) != 0) << bits;
  }
}

TEST(Reduce, Predicates) {
  const std::vector<std::vector<uint8_t>> inputs = {{0, 0, 1, 255}, {0, 1, 0, 1}};
  EXPECT_EQ(run(DType::kPred, Reduction::kSum, inputs), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(run(DType::kPred, Reduction::kMax, inputs), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(run(DType::kPred, Reduction::kMin, inputs), (std::vector<uint8_t>{0, 0, 0, 1}));
}

TEST(Reduce, AnOutputMayBeAnInput) {
  std::vector<float> a(3000, 1), b(3000, 2);
  const void* in[] = {a.data(), b.data()};
  void* out[] = {b.data(), a.data()};
  reduce(DType::kF32, Reduction::kSum, in, out, a.size());
  EXPECT_EQ(a, std::vector<float>(3000, 3));
  EXPECT_EQ(b, a);
}

}  // namespace
}  // namespace sluice::collectives
