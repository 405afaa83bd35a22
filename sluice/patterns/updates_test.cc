// Optimizers' steps: what they are found in, and what they become.
#include <gmock/gmock.h>

#include "sluice/patterns/testing/rows.h"

namespace sluice::patterns {
namespace {

using stablehlo::Donation;
using ::testing::HasSubstr;
using ::testing::Not;

// p = p - rate * (g + decay * p), for parameters p that the results take the memory of.
struct Descent {
  Builder b;
  Values parameters, results;
  std::vector<Donation> donations;

  Value numbers;  // the learning rate and the decay

  Value parameter(const Dims& dims, int32_t output = -1) {
    donations.push_back({output >= 0 ? Donation::Kind::kAliasOutput : Donation::Kind::kNone, output});
    return b.parameter({DType::kF32, dims});
  }
  Value scalar(int64_t position, const Dims& dims) {
    return b.broadcast(b.reshape(b.slice(numbers, {position}, {position + 1}), {}), dims);
  }
  void step(Value p, Value g) {
    const Value decayed = b.add(g, b.multiply(p, scalar(1, p.dims())));
    results.push_back(b.subtract(p, b.multiply(decayed, scalar(0, p.dims()))));
  }
  std::string finish() { return rewritten(b, results, TestLibrary(true), donations); }
};

TEST(OptimizerUpdate, ManyAlikeAreOneCall) {
  Descent d;
  d.numbers = d.parameter({2});
  for (int32_t i = 0; i < 8; ++i) d.step(d.parameter({i + 1}, i), d.parameter({i + 1}));
  const std::string text = d.finish(), line = line_of(text, "sluice_update");
  EXPECT_EQ(operands_of(line), 8 + 8 + 1);
  EXPECT_THAT(line, HasSubstr("output_operand_aliases"));
  EXPECT_THAT(line, HasSubstr("update of 8 tensors"));
  EXPECT_THAT(text, Not(HasSubstr("stablehlo.subtract")));
}

TEST(OptimizerUpdate, AFewSmallOnesAreLeftToTheCompiler) {
  Descent d;
  d.numbers = d.parameter({2});
  for (int32_t i = 0; i < 7; ++i) d.step(d.parameter({4}, i), d.parameter({4}));
  EXPECT_THAT(d.finish(), Not(HasSubstr("custom_call")));
}

TEST(OptimizerUpdate, WhatKeepsItsOldMemoryIsNone) {
  Descent d;
  d.numbers = d.parameter({2});
  d.step(d.parameter({512, 512}), d.parameter({512, 512}));
  EXPECT_THAT(d.finish(), Not(HasSubstr("custom_call")));
}

TEST(OptimizerUpdate, AParameterThatTwoReadIsNotOverwritten) {
  Descent d;
  d.numbers = d.parameter({2});
  const Value p = d.parameter({512, 512}, 0), q = d.parameter({512, 512}, 1);
  d.step(p, d.parameter({512, 512}));
  d.step(q, p);
  EXPECT_THAT(d.finish(), Not(HasSubstr("sluice_update")));
}

TEST(UpdateInProduct, TheProductThatMakesAGradientTakesTheUpdate) {
  Descent d;
  d.numbers = d.parameter({2});
  const Value w = d.parameter({256, 512}, 0), x = d.parameter({32, 256}), g = d.parameter({32, 512});
  const Value of_w = d.b.dot_general(d.b.transpose(x, {1, 0}), g, {.lhs_contract = {1}, .rhs_contract = {0}});
  d.step(w, of_w);
  // Also reads the weight: it must be there before w is overwritten.
  d.results.push_back(
      d.b.dot_general(g, d.b.transpose(w, {1, 0}), {.lhs_contract = {1}, .rhs_contract = {0}}));
  const std::string text = d.finish(), line = line_of(text, "sluice_product_update");
  EXPECT_EQ(operands_of(line), 1 + 1 + 2 + 1);
  EXPECT_THAT(line, HasSubstr("transposed_a = 1"));
  EXPECT_THAT(text, Not(HasSubstr("sluice_update\"")));
}

TEST(UpdateInProduct, AGradientThatIsReadElsewhereIsMade) {
  Descent d;
  d.numbers = d.parameter({2});
  const Value w = d.parameter({256, 512}, 0);
  const Value of_w = d.b.dot_general(d.parameter({256, 32}), d.parameter({32, 512}),
                                     {.lhs_contract = {1}, .rhs_contract = {0}});
  d.step(w, of_w);
  d.results.push_back(d.b.reduce_sum(d.b.multiply(of_w, of_w), {0, 1}));
  const std::string text = d.finish();
  EXPECT_EQ(line_of(text, "sluice_product_update"), "");
  EXPECT_EQ(operands_of(line_of(text, "sluice_update")), 1 + 1 + 1);
}

}  // namespace
}  // namespace sluice::patterns
