// Result types and refusals of rows; their values are compared with LibTorch's by tests/conformance.
#include <gmock/gmock.h>

#include "sluice/base/error.h"
#include "sluice/ops/test_call.h"

namespace sluice::ops {
namespace {

using enum DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(TestCall& call) {
  try {
    call.types();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Pointwise, SubtractionOfBoolSaysWhatToUse) {
  TestCall call("aten::sub.Tensor");
  call.tensor("self", {kPred, {2}}).tensor("other", {kPred, {2}}).number("alpha", 1, true);
  EXPECT_THAT(refusal(call), HasSubstr("logical_xor"));
}

TEST(Pointwise, IntegersToNegativePowersAreRefused) {
  TestCall call("aten::pow.Tensor_Scalar");
  call.tensor("self", {kS64, {2}}).number("exponent", -1, true, Category::kInt);
  EXPECT_THAT(refusal(call), HasSubstr("negative"));
}

TEST(Pointwise, UnknownRoundingModesAreRefused) {
  TestCall call("aten::div.Tensor_mode");
  call.tensor("self", {kF32, {2}}).tensor("other", {kF32, {2}}).text("rounding_mode", "up");
  EXPECT_THAT(refusal(call), HasSubstr("trunc"));
}

TEST(Reduce, SumsOfIntegersAreWide) {
  TestCall call("aten::sum.dim_IntList");
  call.tensor("self", {kU8, {2, 3}}).ints("dim", {-1}).flag("keepdim", true).none("dtype");
  EXPECT_THAT(call.types(), ElementsAre(Type{kS64, {2, 1}}));
}

TEST(Reduce, CountsBeyond32BitsHave64) {
  constexpr int64_t kMax32 = INT32_MAX;
  for (const int64_t size : {kMax32, kMax32 + 1}) {
    TestCall call("aten::count_nonzero.dim_IntList");
    call.tensor("self", {kPred, {size}}).none("dim");
    Emit e = call.emit();
    const Values counts = find_row("aten::count_nonzero.dim_IntList")->emit(e);
    const std::string text = call.builder.finish(counts, {});
    EXPECT_EQ(text.find("tensor<i32>") == std::string::npos, size > kMax32) << text;
  }
}

TEST(Reduce, MeansOfIntegersAreRefused) {
  TestCall call("aten::mean.dim");
  call.tensor("self", {kS64, {2, 3}}).ints("dim", {0}).flag("keepdim", false).none("dtype");
  EXPECT_THAT(refusal(call), HasSubstr("dtype"));
}

TEST(Reduce, ExtremesOfNothingAreRefused) {
  TestCall call("aten::amax");
  call.tensor("self", {kF32, {0, 3}}).ints("dim", {0}).flag("keepdim", false);
  EXPECT_THAT(refusal(call), HasSubstr("at least one element"));
}

TEST(Reduce, PositionsAreI64) {
  TestCall call("aten::max.dim");
  call.tensor("self", {kBF16, {2, 3}}).integer("dim", 1).flag("keepdim", false);
  EXPECT_THAT(call.types(), ElementsAre(Type{kBF16, {2}}, Type{kS64, {2}}));
}

TEST(Shape, OddSizesCannotBeHalved) {
  TestCall call("aten::glu");
  call.tensor("self", {kF32, {2, 3}}).integer("dim", -1);
  EXPECT_THAT(refusal(call), HasSubstr("even size"));
}

TEST(Random, OnlyTheStateIsAskedFor) {
  TestCall call("aten::bernoulli.p");
  call.tensor("self", {kBF16, {4, 5}}).number("p", 0.3).none("generator");
  EXPECT_THAT(call.types(), ElementsAre(Type{kBF16, {4, 5}}));
  EXPECT_THAT(call.slots.asked, ElementsAre(::testing::Pair(1, kF32)));
}

}  // namespace
}  // namespace sluice::ops
