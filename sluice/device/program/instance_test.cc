// Interned types, and instances: equal calls are one.
#include "sluice/device/program/instance.h"

#include <gmock/gmock.h>

#include "sluice/device/testing/recording.h"

namespace sluice::device::testing {
namespace {

using ::testing::ElementsAre;

TEST(Types, EqualTypesHaveOneAddress) {
  const TypeRef type = intern(DType::kF32, {2, 3});
  EXPECT_EQ(intern(stablehlo::Type{DType::kF32, {2, 3}}), type);
  EXPECT_EQ(type->scalar_type, c10::ScalarType::Float);
  EXPECT_EQ(type->type.str(), "tensor<2x3xf32>");
  for (const TypeRef other :
       {intern(DType::kF32, {3, 2}), intern(DType::kF32, {6}), intern(DType::kS32, {2, 3}),
        intern(DType::kF32, {2, 3, 1}), intern(DType::kF32, {})}) {
    EXPECT_NE(other, type);
    EXPECT_NE(other->id, type->id);
  }
}

TEST(Types, ElementTypesGoBothWaysAndTheOthersAreRefused) {
  for (int i = 0; i < static_cast<int>(c10::ScalarType::NumOptions); ++i) {
    const auto type = static_cast<c10::ScalarType>(i);
    if (is_supported(type))
      EXPECT_EQ(to_scalar_type(to_dtype(type)), type) << c10::toString(type);
    else
      EXPECT_THAT([&] { to_dtype(type); }, Refuses(Code::kUnimplemented, c10::toString(type)));
  }
}

using Instances = Recording;

TEST_F(Instances, EqualCallsShareOne) {
  const at::Tensor x = input({2, 3}), y = input({2, 3});
  const Instance& sum = instance_of("aten::add.Tensor", {x, y, 2.0});
  EXPECT_EQ(&instance_of("aten::add.Tensor", {y, x, 3.0}), &sum);
  EXPECT_EQ(instance_by_id(sum.id), &sum);
  EXPECT_THAT(sum.operands, ElementsAre(intern(DType::kF32, {2, 3}), intern(DType::kF32, {2, 3})));
  EXPECT_THAT(sum.results, ElementsAre(intern(DType::kF32, {2, 3})));
  for (const Instance* other : {&instance_of("aten::add.Tensor", {x, y, 1.0}),  // 1 is a constant
                                &instance_of("aten::add.Tensor", {x, input({3}), 2.0}),
                                &instance_of("aten::sub.Tensor", {x, y, 2.0})}) {
    EXPECT_NE(other->id, sum.id);
    EXPECT_NE(other->canonical, sum.canonical);
  }
}

TEST_F(Instances, SlotsAreWhatTheEmitFunctionAsksFor) {
  const at::Tensor x = input({2}), n = input({2}, DType::kS32), d = input({2}, DType::kF64);
  const auto slots = [](const at::Tensor& t, const c10::IValue& alpha) {
    return instance_of("aten::add.Tensor", {t, t, alpha}).slots;
  };
  EXPECT_THAT(slots(x, 2.0), ElementsAre(Slot{2, ScalarClass::kF32}));
  EXPECT_THAT(slots(n, 2), ElementsAre(Slot{2, ScalarClass::kI64}));
  EXPECT_THAT(slots(d, 2.0), ElementsAre(Slot{2, ScalarClass::kF64}));
  EXPECT_THAT(slots(x, 1.0), ElementsAre());
  // Each number once, however often it is asked for.
  EXPECT_THAT(instance_of("aten::clamp", {x, 0.25, 0.5}).slots,
              ElementsAre(Slot{1, ScalarClass::kF32}, Slot{2, ScalarClass::kF32}));
  EXPECT_THAT(instance_of("aten::bernoulli.p", {x, 0.5, c10::IValue()}).slots,
              ElementsAre(Slot{1, ScalarClass::kF32}, Slot{Slot::kRandom, ScalarClass::kI64}));
}

// What is said of an instance holds in every process: neither addresses nor numbers of run-time scalars.
TEST_F(Instances, AreDescribedByRowConstantsAndTypes) {
  const at::Tensor x = input({2, 3});
  EXPECT_EQ(describe(instance_of("aten::add.Tensor", {x, x, 2.0})),
            "aten::add.Tensor(tensor<2x3xf32>, tensor<2x3xf32>, number)");
  EXPECT_EQ(describe(instance_of("aten::pow.Tensor_Scalar", {x, 3})),
            "aten::pow.Tensor_Scalar(tensor<2x3xf32>, 3)");
  EXPECT_EQ(describe(instance_of("aten::sum.dim_IntList",
                                 {x, std::vector<int64_t>{0, -1}, true, c10::ScalarType::Double})),
            "aten::sum.dim_IntList(tensor<2x3xf32>, [0,-1], [1], f64)");
}

TEST_F(Instances, AWrongCallIsRefusedEachTimeAndNotKept) {
  const at::Tensor x = input({2, 3});
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(
        [&] {
          instance_of("aten::mm", {x, x});
        },
        Refuses(Code::kInvalidArgument,
                "aten::mm: shapes cannot be multiplied: Float[2, 3] and Float[2, 3]"));
}

TEST_F(Instances, ACallThatTheRowDoesNotCoverIsKeptWithItsReason) {
  const Instance& instance = instance_of(
      "aten::upsample_bilinear2d",
      {input({1, 1, 2, 2}, DType::kS32), std::vector<int64_t>{4, 4}, false, c10::IValue(), c10::IValue()});
  EXPECT_EQ(instance.unimplemented, "aten::upsample_bilinear2d: expected a float tensor");
}

}  // namespace
}  // namespace sluice::device::testing
