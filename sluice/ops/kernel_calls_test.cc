#include "sluice/ops/kernel_calls.h"

#include <gmock/gmock.h>

#include "sluice/base/error.h"
#include "sluice/ops/test_call.h"

namespace sluice::ops {
namespace {

using enum DType;
using ::testing::HasSubstr;
using ::testing::Not;

// Has a kernel for everything that it is asked for, or for nothing.
struct Library : stablehlo::KernelLibrary {
  explicit Library(bool all) : has_all(all) {}
  bool has(const stablehlo::ConvolutionCall& call) const override {
    convolution = call;
    return has_all;
  }
  bool has(const stablehlo::ProductCall& call) const override {
    product = call;
    return has_all;
  }
  bool has_all;
  mutable stablehlo::ConvolutionCall convolution;
  mutable stablehlo::ProductCall product;
};

// The program of a row's results.
std::string text_of(TestCall& call, const Library& library) {
  call.slots.library = &library;
  Emit e = call.emit();
  Values results;
  for (const Value value : find_row(e.op())->emit(e))
    if (value) results.push_back(value);
  return call.builder.finish(results, {});
}

struct ConvolutionCall : TestCall {
  explicit ConvolutionCall(DType dtype) : TestCall("aten::convolution_overrideable") {
    tensor("input", {dtype, {2, 8, 9, 9}}).tensor("weight", {dtype, {16, 4, 3, 3}}).none("bias");
    ints("stride", {2, 2}).ints("padding", {1, 1}).ints("dilation", {1, 1}).flag("transposed", false);
    ints("output_padding", {0, 0}).integer("groups", 2);
  }
};

TEST(KernelCalls, AConvolutionIsCalledWhereThereIsAKernel) {
  ConvolutionCall call(kF32), again(kF32), rough(kBF16);
  const Library all(true), none(false);
  const std::string text = text_of(call, all);
  EXPECT_THAT(text, HasSubstr("call_target_name = \"sluice_convolution\""));
  EXPECT_THAT(text, HasSubstr("operand_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>, "
                              "dense<[3, 2, 1, 0]> : tensor<4xindex>]"));
  EXPECT_EQ(all.convolution.x, (Dims{2, 8, 9, 9}));
  EXPECT_EQ(all.convolution.y, (Dims{2, 16, 5, 5}));
  EXPECT_EQ(all.convolution.groups, 2);
  EXPECT_THAT(text_of(again, none), HasSubstr("stablehlo.convolution"));
  EXPECT_THAT(text_of(rough, all), HasSubstr("stablehlo.convolution"));
}

TEST(KernelCalls, AProductTakesATransposedOperandAsItLies) {
  const Library all(true);
  TestCall call("aten::mm");
  call.tensor("self", {kF32, {64, 32}});
  Arg weight;
  weight.kind = Arg::Kind::kTensor;
  weight.value = call.builder.transpose(call.builder.parameter({kF32, {48, 32}}), {1, 0});
  call.add("mat2", weight);
  EXPECT_THAT(text_of(call, all), HasSubstr("\"stablehlo.custom_call\"(%arg0, %arg1)"));
  EXPECT_EQ(all.product.m, 64);
  EXPECT_EQ(all.product.k, 32);
  EXPECT_EQ(all.product.n, 48);
  EXPECT_FALSE(all.product.transposed_a);
  EXPECT_TRUE(all.product.transposed_b);
}

TEST(KernelCalls, DimensionsThatDoNotFitAreTheCompilersError) {
  const Library all(true);
  TestCall call("aten::mm");
  call.tensor("self", {kF32, {64, 32}}).tensor("mat2", {kF32, {33, 48}});
  EXPECT_THROW((void)text_of(call, all), Error);
}

TEST(KernelCalls, SmallSumsAreLeftToTheCompiler) {
  const Library all(true);
  for (const int64_t side : {4, 64}) {
    TestCall call("aten::native_batch_norm");
    call.tensor("input", {kF32, {8, 4, side, side}})
        .none("weight")
        .none("bias")
        .none("running_mean")
        .none("running_var");
    call.flag("training", true).number("momentum", 0.1).number("eps", 1e-5, true);
    const std::string text = text_of(call, all);
    if (side == 64)
      EXPECT_THAT(text, HasSubstr("sluice_moments"));
    else
      EXPECT_THAT(text, Not(HasSubstr("custom_call")));
  }
}

TEST(KernelCalls, RunningStatisticsMoveInTheCallOfTheMoments) {
  const Library all(true);
  for (const DType kept : {kF32, kBF16}) {
    TestCall call("aten::native_batch_norm");
    call.tensor("input", {kF32, {8, 4, 64, 64}})
        .none("weight")
        .none("bias")
        .tensor("running_mean", {kept, {4}})
        .tensor("running_var", {kept, {4}});
    call.flag("training", true).number("momentum", 0.1).number("eps", 1e-5, true);
    const std::string text = text_of(call, all);
    const char* five = "-> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)";
    if (kept == kF32)
      EXPECT_THAT(text, HasSubstr(five));
    else
      EXPECT_THAT(text, Not(HasSubstr(five)));  // the compiler moves what is no f32
  }
}

}  // namespace
}  // namespace sluice::ops
