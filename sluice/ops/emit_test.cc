#include "sluice/ops/emit.h"

#include <gmock/gmock.h>

#include "sluice/base/error.h"
#include "sluice/ops/test_call.h"

namespace sluice::ops {
namespace {

using enum DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(Promotion, TwoTypesAsTorchPromoteTypesSays) {
  const DType types[] = {kPred, kS8, kS16, kS32, kS64, kU8, kF16, kBF16, kF32, kF64};
  // What torch.promote_types of PyTorch 2.13 printed, row and column in the order above.
  const DType expected[10][10] = {
      {kPred, kS8, kS16, kS32, kS64, kU8, kF16, kBF16, kF32, kF64},
      {kS8, kS8, kS16, kS32, kS64, kS16, kF16, kBF16, kF32, kF64},
      {kS16, kS16, kS16, kS32, kS64, kS16, kF16, kBF16, kF32, kF64},
      {kS32, kS32, kS32, kS32, kS64, kS32, kF16, kBF16, kF32, kF64},
      {kS64, kS64, kS64, kS64, kS64, kS64, kF16, kBF16, kF32, kF64},
      {kU8, kS16, kS16, kS32, kS64, kU8, kF16, kBF16, kF32, kF64},
      {kF16, kF16, kF16, kF16, kF16, kF16, kF16, kF32, kF32, kF64},
      {kBF16, kBF16, kBF16, kBF16, kBF16, kBF16, kF32, kBF16, kF32, kF64},
      {kF32, kF32, kF32, kF32, kF32, kF32, kF32, kF32, kF32, kF64},
      {kF64, kF64, kF64, kF64, kF64, kF64, kF64, kF64, kF64, kF64},
  };
  for (int i = 0; i < 10; ++i)
    for (int j = 0; j < 10; ++j)
      EXPECT_EQ(promote_types(types[i], types[j]), expected[i][j])
          << stablehlo::dtype_name(types[i]) << " with " << stablehlo::dtype_name(types[j]);
}

TEST(Promotion, DimensionsBeforeZeroDimensionsAsTorchResultTypeSays) {
  // The other tensor: f32 0-d, f64 0-d, i64 0-d, bool 0-d, f16 0-d, f16 1-d, i8 1-d.
  const Type others[] = {{kF32, {}}, {kF64, {}},  {kS64, {}}, {kPred, {}},
                         {kF16, {}}, {kF16, {2}}, {kS8, {2}}};
  struct Case {
    Type first;
    DType with_tensor[7];
    DType with_number[3];  // 2.5, 3, true
  };
  // What torch.result_type of PyTorch 2.13 printed.
  const Case cases[] = {
      {{kS64, {2}}, {kF32, kF64, kS64, kS64, kF16, kF16, kS64}, {kF32, kS64, kS64}},
      {{kS32, {2}}, {kF32, kF64, kS32, kS32, kF16, kF16, kS32}, {kF32, kS32, kS32}},
      {{kBF16, {2}}, {kBF16, kBF16, kBF16, kBF16, kBF16, kF32, kBF16}, {kBF16, kBF16, kBF16}},
      {{kPred, {2}}, {kF32, kF64, kS64, kPred, kF16, kF16, kS8}, {kF32, kS64, kPred}},
      {{kU8, {2, 2}}, {kF32, kF64, kU8, kU8, kF16, kF16, kS16}, {kF32, kU8, kU8}},
      {{kF64, {2}}, {kF64, kF64, kF64, kF64, kF64, kF64, kF64}, {kF64, kF64, kF64}},
      {{kS16, {}}, {kF32, kF64, kS64, kS16, kF16, kF16, kS8}, {kF32, kS16, kS16}},
      {{kF32, {}}, {kF32, kF64, kF32, kF32, kF32, kF16, kF32}, {kF32, kF32, kF32}},
  };
  const Category categories[] = {Category::kFloat, Category::kInt, Category::kBool};
  const DType wrapped[] = {kF64, kS64, kPred};
  for (const Case& c : cases) {
    for (int i = 0; i < 7; ++i) {
      TestCall call("aten::add.Tensor");
      call.tensor("self", c.first).tensor("other", others[i]);
      EXPECT_EQ(call.emit().promote({"self", "other"}), c.with_tensor[i])
          << c.first.str() << " " << others[i].str();
    }
    for (int i = 0; i < 3; ++i) {
      TestCall number("aten::add.Scalar"), tensor("aten::add.Tensor");
      number.tensor("self", c.first).number("other", 1, false, categories[i]);
      tensor.tensor("self", c.first).wrapped("other", wrapped[i]);
      EXPECT_EQ(number.emit().promote({"self", "other"}), c.with_number[i]) << c.first.str();
      EXPECT_EQ(tensor.emit().promote({"self", "other"}), c.with_number[i]) << c.first.str();
    }
  }
}

TEST(Promotion, ComplexNumbersAreAboveFloats) {
  const struct {
    DType a, b, expected;
  } cases[] = {{kC64, kF32, kC64},  {kC64, kF64, kC128},  {kF64, kC64, kC128}, {kC64, kS64, kC64},
               {kC64, kBF16, kC64}, {kC128, kF16, kC128}, {kPred, kC64, kC64}};
  for (const auto& c : cases) EXPECT_EQ(promote_types(c.a, c.b), c.expected) << Type{c.a, {}}.str();
  TestCall number("aten::add.Tensor"), zero_dim("aten::add.Tensor");
  number.tensor("self", {kF64, {3}}).number("other", 1, true, Category::kComplex);
  EXPECT_EQ(number.emit().promote({"self", "other"}), kC128);
  zero_dim.tensor("self", {kC64, {3}}).tensor("other", {kF64, {}});
  EXPECT_EQ(zero_dim.emit().promote({"self", "other"}), kC64);
  EXPECT_EQ(zero_dim.emit().promote_float({"self"}), kC64);
}

TEST(Emit, ComplexNumbersDoNotFitReals) {
  TestCall call("aten::fill.Scalar");
  call.tensor("self", {kF32, {2}}).number("value", 1, true, Category::kComplex);
  EXPECT_THROW(call.types(), Error);
  TestCall tensor("aten::fill.Tensor");
  tensor.tensor("self", {kF32, {2}}).tensor("value", {kC64, {}});
  EXPECT_THROW(tensor.types(), Error);
}

TEST(Emit, RunTimeNumbersAreRealAndBecomeComplex) {
  TestCall call("aten::mul.Tensor");
  call.tensor("self", {kC128, {2}}).number("other", 2);
  EXPECT_THAT(call.types(), ElementsAre(Type{kC128, {2}}));
  EXPECT_THAT(call.slots.asked, ElementsAre(Pair(1, kF64)));
}

TEST(Promotion, FloatsFromIntegers) {
  TestCall call("aten::div.Tensor");
  call.tensor("self", {kS64, {3}}).tensor("other", {kU8, {3}});
  EXPECT_EQ(call.emit().promote_float({"self", "other"}), kF32);
}

TEST(Emit, NumbersTravelInTheTypeOfTheComputation) {
  TestCall call("aten::mul.Tensor");
  call.tensor("self", {kBF16, {2, 3}}).wrapped("other", kF64);
  EXPECT_THAT(call.types(), ElementsAre(Type{kBF16, {2, 3}}));
  EXPECT_THAT(call.slots.asked, ElementsAre(Pair(1, kF32)));
}

TEST(Emit, ConstantNumbersAskForNoSlot) {
  TestCall call("aten::add.Tensor");
  call.tensor("self", {kF32, {2}}).tensor("other", {kF32, {3, 1}}).number("alpha", 1, true, Category::kInt);
  EXPECT_THAT(call.types(), ElementsAre(Type{kF32, {3, 2}}));
  EXPECT_TRUE(call.slots.asked.empty());

  TestCall slot("aten::add.Tensor");
  slot.tensor("self", {kF32, {2}}).tensor("other", {kF32, {3, 1}}).number("alpha", 0.5);
  slot.types();
  EXPECT_THAT(slot.slots.asked, ElementsAre(Pair(2, kF32)));
}

TEST(Emit, ErrorsNameTheOperationAndTheArgument) {
  TestCall call("aten::add.Tensor");
  call.tensor("self", {kF32, {2}}).none("other");
  try {
    call.emit().tensor("other");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("aten::add.Tensor"));
    EXPECT_THAT(error.what(), HasSubstr("'other'"));
  }
  EXPECT_THROW(call.emit().number("self"), Error);
}

TEST(Dims, CountedFromTheEnd) {
  EXPECT_EQ(wrap_dim(-1, 3), 2);
  EXPECT_EQ(wrap_dim(0, 0), 0);
  EXPECT_EQ(wrap_dim(-1, 0), 0);
  EXPECT_THROW(wrap_dim(3, 3), Error);
  EXPECT_THROW(wrap_dim(1, 0), Error);
  EXPECT_THAT(wrap_dims({-1, 0}, 3, false), ElementsAre(0, 2));
  EXPECT_THAT(wrap_dims({}, 2, true), ElementsAre(0, 1));
  EXPECT_TRUE(wrap_dims({}, 2, false).empty());
  EXPECT_TRUE(wrap_dims({-1}, 0, false).empty());
  EXPECT_THROW(wrap_dims({1, -1}, 2, false), Error);
}

TEST(Dims, Broadcast) {
  EXPECT_THAT(broadcast_dims({3, 1}, {2}), ElementsAre(3, 2));
  EXPECT_THAT(broadcast_dims({}, {2, 3}), ElementsAre(2, 3));
  EXPECT_THAT(broadcast_dims({1, 5}, {0, 1}), ElementsAre(0, 5));
  EXPECT_THROW(broadcast_dims({3}, {2}), Error);
}

}  // namespace
}  // namespace sluice::ops
