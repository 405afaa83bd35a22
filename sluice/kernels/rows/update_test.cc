#include "sluice/kernels/rows/update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

using stablehlo::UpdateCode;
using Op = UpdateCode::Op;

// Registers: p, m, g, the two numbers, then the steps: m * momentum + g, and p moved by it.
UpdateCode momentum() {
  UpdateCode code;
  code.tensors = 3;
  code.numbers = 2;  // 3: momentum, 4: -lr
  code.steps = {{Op::kMultiply, 1, 3}, {Op::kAdd, 5, 2}, {Op::kMultiply, 6, 4}, {Op::kAdd, 0, 7}};
  code.results = {8, 6};
  return code;
}

std::vector<float> numbers(size_t count, float from) {
  std::vector<float> result(count);
  for (size_t i = 0; i < count; ++i) result[i] = from + 0.001f * static_cast<float>(i % 977);
  return result;
}

TEST(Update, MovesEveryTensorWithItsOwnNumbers) {
  const std::vector<size_t> sizes = {1, 511, 512, 513, 40'000, 0};
  std::vector<std::vector<float>> p, m, g;
  std::vector<UpdateMember> members;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto at = static_cast<float>(i);
    p.push_back(numbers(sizes[i], at)), m.push_back(numbers(sizes[i], -at)),
        g.push_back(numbers(sizes[i], 2 * at));
  }
  const auto old_p = p, old_m = m;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const float rate = 0.1f * static_cast<float>(i + 1);
    members.push_back({{p[i].data(), m[i].data(), g[i].data()}, {0.5f, -rate}, sizes[i]});
  }
  const TestThreads threads;
  run_updates(momentum(), members);
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (size_t k = 0; k < sizes[i]; ++k) {
      const float moved = old_m[i][k] * 0.5f + g[i][k];
      ASSERT_EQ(m[i][k], moved) << i << " " << k;
      ASSERT_EQ(p[i][k], old_p[i][k] + moved * members[i].numbers[1]) << i << " " << k;
    }
  }
}

// The first result's memory is read after its step: it must not be written before.
TEST(Update, AValueIsReadBeforeItIsOverwritten) {
  UpdateCode code;
  code.tensors = 2;
  code.steps = {{Op::kAdd, 0, 1}, {Op::kSubtract, 0, 1}};
  code.results = {2, 3};
  std::vector<float> a = numbers(2000, 1), b = numbers(2000, 7);
  const auto old_a = a, old_b = b;
  const UpdateMember member{{a.data(), b.data()}, {}, a.size()};
  run_updates(code, {&member, 1});
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i], old_a[i] + old_b[i]);
    ASSERT_EQ(b[i], old_a[i] - old_b[i]);
  }
}

// One tensor comes in pieces: whole rows, or some columns of them.
TEST(Update, PiecesAreUpdatedAsTheWholeIs) {
  constexpr size_t kRows = 9, kColumns = 700;
  std::vector<float> p = numbers(kRows * kColumns, 1), m = numbers(p.size(), -1), g = numbers(p.size(), 3);
  std::vector<float> wanted_p = p, wanted_m = m;
  const std::vector<float> rates = {0.5f, -0.1f};
  const UpdateMember wanted{{wanted_p.data(), wanted_m.data(), g.data()}, rates, p.size()};
  run_updates(momentum(), {&wanted, 1});

  const UpdateMember member{{p.data(), m.data(), nullptr}, rates, p.size()};
  const auto update = [&](size_t row, size_t rows, size_t column, size_t columns, size_t step) {
    std::vector<float> piece(rows * step);
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = 0; i < columns; ++i) piece[r * step + i] = g[(row + r) * kColumns + column + i];
    update_piece(momentum(), member, 2, kColumns, {row, rows, column, columns, piece.data(), step});
  };
  update(0, 4, 0, kColumns, kColumns);
  update(4, 2, 0, kColumns, kColumns + 5);
  update(6, 3, 0, 600, 600);
  update(6, 3, 600, 100, 128);
  EXPECT_EQ(p, wanted_p);
  EXPECT_EQ(m, wanted_m);
}

TEST(Update, EveryOperation) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto run = [](Op op, float a, float b) {
    UpdateCode code;
    code.tensors = 2;
    code.steps = {{op, 0, 1}};
    code.results = {2};
    const UpdateMember member{{&a, &b}, {}, 1};
    run_updates(code, {&member, 1});
    return a;
  };
  EXPECT_EQ(run(Op::kAdd, 3, 4), 7);
  EXPECT_EQ(run(Op::kSubtract, 3, 4), -1);
  EXPECT_EQ(run(Op::kMultiply, 3, 4), 12);
  EXPECT_EQ(run(Op::kDivide, 3, 4), 0.75f);
  EXPECT_EQ(run(Op::kMaximum, 3, 4), 4);
  EXPECT_TRUE(std::isnan(run(Op::kMaximum, 3, nan)));
  EXPECT_TRUE(std::isnan(run(Op::kMaximum, nan, 3)));
  EXPECT_EQ(run(Op::kSqrt, 9, 0), 3);
}

TEST(UpdateCode, WordsComeBackAndWrongOnesDoNot) {
  const auto words = momentum().to_words();
  const auto read = UpdateCode::from_words(words);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->to_words(), words);
  EXPECT_FALSE(UpdateCode::from_words({}));
  EXPECT_FALSE(UpdateCode::from_words({1, 0, 0, 1}));                    // the step is missing
  EXPECT_FALSE(UpdateCode::from_words({1, 0, 0, 1, 0, 0, 1, 1}));        // it reads its own result
  EXPECT_FALSE(UpdateCode::from_words({1, 0, 0, 1, 99, 0, 0, 1}));       // no such operation
  EXPECT_FALSE(UpdateCode::from_words({1, 0, 0, 1, 0, 0, 0, 0}));        // a result that no step makes
  EXPECT_FALSE(UpdateCode::from_words({1, 0, 0, 1, 0, 0, 0, 1, 1, 1}));  // more results than tensors
}

}  // namespace
}  // namespace sluice::kernels
