// What becomes part of a product.
#include <gmock/gmock.h>

#include "sluice/ops/common.h"
#include "sluice/patterns/testing/rows.h"

namespace sluice::patterns {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kProduct = "sluice_product";

size_t calls_in(const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find("custom_call\""); at != std::string::npos;
       at = text.find("custom_call\"", at + 1))
    ++count;
  return count;
}

// A linear layer on [8, 5, 48], as LibTorch records it: a product of matrices, its dims and its bias.
struct Linear : Rows {
  Value product = mm(parameter({40, 48}), parameter({48, 64}));
  Value seen = b.reshape(b.reshape(product, {40 * 64}), {8, 5, 64});
  Value bias = parameter({64});
};

TEST(Product, ABiasIsPartOfItInOtherDimsToo) {
  Linear l;
  const std::string text = l.finish({l.add(l.seen, l.bias)});
  EXPECT_EQ(operands_of(line_of(text, kProduct)), 3);
  EXPECT_THAT(text, Not(HasSubstr("stablehlo.add")));
  EXPECT_EQ(calls_in(text), 1);
}

TEST(Product, WhatElseReadsAProductKeepsIt) {
  Linear l;
  const std::string text = l.finish({l.add(l.seen, l.bias), l.product});
  EXPECT_EQ(operands_of(line_of(text, kProduct)), 2);
  EXPECT_THAT(text, HasSubstr("stablehlo.add"));
}

TEST(Product, ABiasOfOtherDimsIsNone) {
  Linear l;
  EXPECT_EQ(operands_of(line_of(l.finish({l.add(l.seen, l.parameter({5, 64}))}), kProduct)), 2);
}

TEST(Product, ASecondBiasStaysASum) {
  Linear l;
  const std::string text = l.finish({l.add(l.add(l.seen, l.bias), l.parameter({64}))});
  EXPECT_EQ(operands_of(line_of(text, kProduct)), 3);
  EXPECT_THAT(text, HasSubstr("stablehlo.add"));
}

// As the steps of a recurrent layer.
TEST(Product, InTheBodyOfALoopToo) {
  Rows r;
  const Value state = r.parameter({40, 48}), weight = r.parameter({48, 48});
  const Value transposed = r.b.transpose(weight, {1, 0});
  const Values made = repeat(r.b, 5, {state}, [&](Builder& b, Value, const Values& s) {
    const Value product = b.dot_general(s[0], transposed, {.lhs_contract = {1}, .rhs_contract = {0}});
    return Values{b.add(b.tanh(product), product)};
  });
  const std::string text = r.finish(made);
  EXPECT_EQ(operands_of(line_of(text, kProduct)), 2);
  EXPECT_THAT(line_of(text, kProduct), HasSubstr("transposed_b = 0"));
  EXPECT_THAT(text, Not(HasSubstr("stablehlo.dot_general")));
  EXPECT_LT(text.find("stablehlo.transpose"), text.find("stablehlo.while"));
  EXPECT_EQ(calls_in(text), 1);
}

TEST(Product, AReluBehindABiasIsPartOfIt) {
  Linear l;
  const std::string text = l.finish({l.relu(l.add(l.seen, l.bias))});
  EXPECT_THAT(line_of(text, kProduct), HasSubstr("rectified = 1"));
  Linear bare;
  EXPECT_THAT(bare.finish({bare.relu(bare.seen)}), Not(HasSubstr("rectified")));
  Linear both;
  const Value biased = both.add(both.seen, both.bias);
  EXPECT_THAT(both.finish({both.relu(biased), biased}), Not(HasSubstr("rectified")));
}

TEST(Product, AResidualSumIsPartOfIt) {
  Linear l;
  const std::string text = l.finish({l.add(l.add(l.seen, l.bias), l.parameter({8, 5, 64}))});
  EXPECT_EQ(operands_of(line_of(text, kProduct)), 4);
  EXPECT_EQ(calls_in(text), 1);
  Linear scaled;
  EXPECT_EQ(operands_of(line_of(scaled.finish({scaled.add(scaled.seen, scaled.bias, 0.5)}), kProduct)), 2);
}

TEST(Product, AReluOfAResidualSumIsNot) {
  Linear l;
  const Value sum = l.add(l.add(l.seen, l.bias), l.parameter({8, 5, 64}));
  EXPECT_THAT(l.finish({l.relu(sum)}), Not(HasSubstr("rectified")));
}

TEST(Product, AReluInFrontOfTheLayerIsPartOfItsGradient) {
  Linear l;
  const std::string text = l.finish({l.relu_gradient(l.seen, l.parameter({8, 5, 64}))});
  EXPECT_THAT(line_of(text, kProduct), HasSubstr("gated = 1"));
  EXPECT_EQ(operands_of(line_of(text, kProduct)), 3);
  Linear biased;
  const Value g = biased.add(biased.seen, biased.bias);
  EXPECT_THAT(biased.finish({biased.relu_gradient(g, biased.parameter({8, 5, 64}))}),
              Not(HasSubstr("gated")));
}

}  // namespace
}  // namespace sluice::patterns
