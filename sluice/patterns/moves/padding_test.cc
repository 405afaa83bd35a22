// Arguments with padding: which operations take it along. tests/stablehlo and tests/device compare values.
#include <gmock/gmock.h>

#include <functional>

#include "sluice/patterns/testing/counting.h"
#include "sluice/patterns/testing/rows.h"

namespace sluice::patterns {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kWords = 13, kLonger = 16, kWidth = 8;

// Returns the program of what `made` makes of the first 13 rows of an argument with 16.
std::string text_with(const std::function<Values(Rows&, Value)>& made, bool padded = true) {
  Rows r;
  const Value table = r.b.slice(r.parameter({kLonger, kWidth}), {0, 0}, {kWords, kWidth});
  const Values results = made(r, table);
  return r.b.finish(rewrite(r.b, results, {}, nullptr, nullptr, {}, {},
                            padded ? std::vector<size_t>{0} : std::vector<size_t>()),
                    {});
}

std::string table_slice() { return "(tensor<16x8xf32>) -> tensor<13x8xf32>"; }

// As the rows write the loss and its gradients.
TEST(Padding, ReachesTheEndOfALossAndItsGradients) {
  const auto loss = [](Rows& r, Value table) {
    const Value x = r.parameter({6, kWidth});
    // As a view of the table is written.
    const Value view = r.b.reshape(r.b.reshape(table, {kWords * kWidth}), {kWords, kWidth});
    const Value logarithms = r.log_softmax(r.mm(x, r.b.transpose(view, {1, 0})));
    const Value by_scores = r.cross_entropy_gradient(logarithms);
    return Values{r.negative_log_likelihood(logarithms), r.mm(by_scores, table),
                  r.b.pad(r.mm(r.b.transpose(by_scores, {1, 0}), x), r.b.splat(0, Type{kF32, {}}), {0, 0},
                          {kLonger - kWords, 0})};
  };
  const std::string text = text_with(loss);
  EXPECT_THAT(text, HasSubstr("tensor<6x16xf32>"));
  EXPECT_THAT(text, Not(HasSubstr("13x")));
  EXPECT_THAT(text, Not(HasSubstr("x13x")));
  EXPECT_THAT(text_with(loss, false), HasSubstr(table_slice()));
}

// A product over the words adds zeros, whatever the scores are where there is no word.
TEST(Padding, IsMaskedBeforeASum) {
  const std::string text = text_with([](Rows& r, Value table) {
    const Value scores = r.b.exp(r.mm(r.parameter({6, kWidth}), r.b.transpose(table, {1, 0})));
    return Values{r.mm(scores, table), r.b.reduce_sum(scores, {1}),
                  r.b.reduce_max(scores, {1}, /*nan_wins=*/false)};
  });
  EXPECT_EQ(times_in(text, "stablehlo.iota"), 3u);
  EXPECT_EQ(times_in(text, "(tensor<6x16xi1>, tensor<6x16xf32>, tensor<6x16xf32>)"), 3u);
  EXPECT_THAT(text, Not(HasSubstr("13x")));
  // The argument's own padding is 0.
  EXPECT_EQ(times_in(text, "tensor<16x8xi1>"), 0u);
}

// A number beyond the last word means the last word, as without padding.
TEST(Padding, RowsAreReadWithinTheWords) {
  const std::string text = text_with([](Rows& r, Value table) {
    const Value ids = r.b.parameter({kS32, {5, 1}});
    return Values{r.b.gather(table, ids,
                             {.offset_dims = {1},
                              .collapsed_slice_dims = {0},
                              .start_index_map = {0},
                              .index_vector_dim = 1,
                              .slice_sizes = {1, kWidth}})};
  });
  EXPECT_THAT(text, HasSubstr("stablehlo.clamp"));
  EXPECT_THAT(text, HasSubstr("dense<12> : tensor<i32>"));
  EXPECT_THAT(text, HasSubstr("(tensor<16x8xf32>, tensor<5x1xi32>) -> tensor<5x8xf32>"));
  EXPECT_THAT(text, Not(HasSubstr(table_slice())));
}

// The words move to other places, or another value decides how many there are.
TEST(Padding, WhatHasNoRuleReadsTheSlice) {
  const std::vector<std::function<Value(Rows&, Value)>> programs = {
      [](Rows& r, Value table) { return r.b.reverse(table, {0}); },
      [](Rows& r, Value table) { return r.b.reshape(table, {kWords * kWidth}); },
      [](Rows& r, Value table) {
        return r.b.slice(table, {1, 0}, {kWords, kWidth});
      },
      [](Rows& r, Value table) {
        return r.b.concatenate(std::array{table, table}, 0);
      },
      [](Rows& r, Value table) {
        return r.b.pad(table, r.b.splat(1, Type{kF32, {}}), {1, 0}, {kLonger - kWords - 1, 0});
      }};
  for (size_t i = 0; i < programs.size(); ++i)
    EXPECT_THAT(text_with([&](Rows& r, Value table) { return Values{programs[i](r, table)}; }),
                HasSubstr(table_slice()))
        << i;
}

// What is computed with a value without padding, or with numbers.
TEST(Padding, OtherOperandsGetIt) {
  const std::string text = text_with([](Rows& r, Value table) {
    const Value other = r.parameter({kWords, kWidth}), bias = r.parameter({kWords});
    const Value sum = r.b.add(r.b.multiply(table, r.b.splat(2, table.type())),
                              r.b.broadcast_in_dim(bias, table.dims(), {0}));
    return Values{r.b.pad(r.b.add(sum, other), r.b.splat(0, Type{kF32, {}}), {0, 0}, {kLonger - kWords, 0})};
  });
  EXPECT_EQ(times_in(text, "stablehlo.pad"), 2u);
  EXPECT_THAT(text, HasSubstr("(tensor<13x8xf32>, tensor<f32>) -> tensor<16x8xf32>"));
  EXPECT_THAT(text, HasSubstr("(tensor<13xf32>, tensor<f32>) -> tensor<16xf32>"));
  EXPECT_EQ(times_in(text, "stablehlo.select"), 1u);
  EXPECT_THAT(text, Not(HasSubstr(table_slice())));
}

}  // namespace
}  // namespace sluice::patterns
