#include "sluice/stablehlo/flops.h"

#include "sluice/stablehlo/composites.h"
#include "sluice/stablehlo/layer_work.h"
#include "sluice/stablehlo/rewriter.h"
#include "sluice/stablehlo/test_support.h"

namespace sluice::stablehlo::testing {
namespace {

// Of what follows from the program so far. What nobody reads is gone from it behind that.
Flops flops_of(Builder& b, const Values& results) {
  Rewriter program(b, results, {});
  const Flops flops = count_flops(program.operations(), program.results()).all;
  (void)program.finish();
  return flops;
}

const DotDims kMatrices{.lhs_contract = {1}, .rhs_contract = {0}};

TEST(Flops, OfAProductAreTwoForEachMultiplication) {
  Builder b;
  const Value x = b.parameter(f32({3, 4, 5})), y = b.parameter(f32({3, 5, 7}));
  const Value result =
      b.dot_general(x, y, {.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {1}});
  EXPECT_EQ(flops_of(b, {result}), (Flops{.f32 = 2.0 * 3 * 4 * 5 * 7}));
}

TEST(Flops, StandByTheTypeThatIsMultiplied) {
  Builder b;
  Values results;
  for (const DType dtype :
       {DType::kF64, DType::kF32, DType::kBF16, DType::kF16, DType::kF8E5M2, DType::kC64, DType::kS32}) {
    const Value x = b.parameter({dtype, {2, 3}}), y = b.parameter({dtype, {3, 5}});
    const std::optional<DType> sum =
        is_complex(dtype) || !is_float(dtype) ? std::nullopt : std::optional(DType::kF32);
    results.push_back(b.dot_general(x, y, kMatrices, sum));
  }
  constexpr double kOne = 2.0 * 2 * 3 * 5;
  EXPECT_EQ(flops_of(b, results), (Flops{.f64 = kOne, .f32 = kOne + 4 * kOne, .f16 = 2 * kOne, .f8 = kOne}));
}

TEST(Flops, StandByLayersAndPasses) {
  Builder b;
  const Value x = b.parameter(f32({4, 4}));
  b.set_location("layer1.conv.weight/aten::mm");
  Value y = b.dot_general(x, b.add(x, x), kMatrices);
  b.set_location("layer1.conv.weight/backward/aten::mm");
  for (int i = 0; i < 2; ++i) y = b.dot_general(y, x, kMatrices);
  b.set_location("aten::mm");
  y = b.dot_general(y, x, kMatrices);
  Rewriter program(b, {y}, {});
  const ProgramFlops flops = count_flops(program.operations(), program.results());
  const LayerWorks works = layer_works(b, flops);
  (void)program.finish();
  constexpr double kOne = 2.0 * 4 * 4 * 4;
  EXPECT_EQ(flops.all, (Flops{.f32 = 4 * kOne}));
  ASSERT_EQ(works.size(), 2u);
  EXPECT_EQ(works.at("layer1.conv").forward, (Flops{.f32 = kOne}));
  EXPECT_EQ(works.at("layer1.conv").backward, (Flops{.f32 = 2 * kOne}));
  EXPECT_EQ(works.at("").forward, (Flops{.f32 = kOne}));
}

// Two products of attention, and one outside of it.
TEST(Flops, OfCausalAttentionAreNamed) {
  for (const int64_t causal : {0, 1}) {
    Builder b;
    const Value x = b.parameter(f32({4, 8})), w = b.parameter(f32({8, 8}));
    const Value before = b.dot_general(x, w, kMatrices);
    const Value y = b.composite(composites::kAttention, {before, w}, {{"causal", causal}}, [&] {
      return Values{b.dot_general(b.dot_general(before, w, kMatrices), w, kMatrices)};
    })[0];
    constexpr double kOne = 2.0 * 4 * 8 * 8;
    const Flops found = flops_of(b, {y});
    EXPECT_EQ(found.f32, 3 * kOne);
    EXPECT_EQ(found.causal(), causal != 0 ? 2 * kOne : 0);
    EXPECT_EQ(found.with_half_of_causal(), (Flops{.f32 = causal != 0 ? 2 * kOne : 3 * kOne}));
  }
}

TEST(Flops, OfWhatNobodyReadsAreNone) {
  Builder b;
  const Value x = b.parameter(f32({4, 4}));
  const Value read = b.add(x, x);
  (void)b.dot_general(x, x, kMatrices);
  EXPECT_EQ(flops_of(b, {read}), Flops());
}

// `flops` is what XLA's own cost analysis says, in JAX 0.10.2: lower(…).cost_analysis() of
// lax.conv_general_dilated with these numbers.
TEST(Flops, OfAConvolutionLeaveOutPaddingAndHoles) {
  struct Case {
    int64_t in, kernel, stride, low, high, in_dilation, kernel_dilation;
    double flops;
  };
  for (const Case& c :
       {Case{9, 3, 1, 1, 1, 1, 1, 6000}, Case{9, 3, 2, 1, 1, 1, 1, 3120}, Case{8, 3, 1, 0, 0, 1, 2, 2880},
        Case{5, 3, 1, 2, 1, 2, 1, 3360}, Case{5, 4, 3, 3, 3, 2, 2, 960}, Case{9, 3, 1, -1, 2, 1, 1, 5040},
        Case{2, 3, 1, 1, 1, 1, 1, 960}, Case{1, 3, 1, 1, 1, 1, 1, 240}, Case{6, 2, 2, 5, 5, 3, 1, 1440}}) {
    Builder b;
    const Value x = b.parameter(f32({2, 4, c.in, 5})), w = b.parameter(f32({6, 2, c.kernel, 1}));
    const Value y =
        b.convolution(x, w, {.input_spatial = {2, 3}, .kernel_spatial = {2, 3}, .output_spatial = {2, 3}},
                      {.strides = {c.stride, 1},
                       .padding = {{c.low, c.high}, {0, 0}},
                       .lhs_dilation = {c.in_dilation, 1},
                       .rhs_dilation = {c.kernel_dilation, 1},
                       .feature_groups = 2});
    EXPECT_EQ(flops_of(b, {y}), (Flops{.f32 = c.flops}))
        << c.in << " " << c.kernel << " " << c.stride << " " << c.low << " " << c.in_dilation;
  }
}

// What a checkpointed layer does in the backward pass: the same product of the same values, behind barriers.
TEST(Flops, OfWhatIsMadeAgainCountOnce) {
  Builder b;
  const Value x = b.parameter(f32({4, 8})), w = b.parameter(f32({8, 8})), other = b.parameter(f32({8, 8}));
  const auto layer = [&](Value in, Value weight) { return b.tanh(b.dot_general(in, weight, kMatrices)); };
  constexpr double kOne = 2.0 * 4 * 8 * 8;
  const Value once = layer(layer(x, w), w);
  EXPECT_EQ(flops_of(b, {once}).f32, 2 * kOne);
  const Value kept = b.optimization_barrier(x);
  const Value again = layer(layer(kept, b.optimization_barrier(w)), w);
  EXPECT_EQ(flops_of(b, {once, again}).f32, 2 * kOne);
  // Another weight, another attribute and another type are others.
  const Value different = layer(x, other);
  EXPECT_EQ(flops_of(b, {once, again, different}).f32, 3 * kOne);
  const Value transposed = b.dot_general(x, w, {.lhs_contract = {1}, .rhs_contract = {1}});
  EXPECT_EQ(flops_of(b, {once, transposed}).f32, 3 * kOne);
}

// x w w … with so many products; where `step` is not 1, nobody sees how many.
Value loop(Builder& b, Value x, Value w, int64_t times, int64_t step = 1) {
  const Value init[] = {x, b.splat(0, s32())};
  return b.while_(
      init,
      [&](Builder& b, std::span<const Value> in) {
        return Values{b.compare(in[1], b.splat(times * step, s32()), Compare::kLt)};
      },
      [&](Builder& b, std::span<const Value> in) {
        return Values{b.dot_general(in[0], w, kMatrices), b.add(in[1], b.splat(step, s32()))};
      })[0];
}

TEST(Flops, OfALoopCountAsOftenAsItRuns) {
  constexpr double kOne = 2.0 * 4 * 8 * 8;
  Builder b;
  const Value x = b.parameter(f32({4, 8})), w = b.parameter(f32({8, 8}));
  const Value once = loop(b, x, w, 7), again = loop(b, b.optimization_barrier(x), w, 7);
  const Flops found = flops_of(b, {once, again});
  EXPECT_TRUE(found.complete());
  EXPECT_EQ(found, (Flops{.f32 = 7 * kOne}));
  // Nobody says how often this one runs.
  const Value unknown = loop(b, b.tanh(x), w, 7, 2);
  const Flops both = flops_of(b, {once, unknown});
  EXPECT_FALSE(both.complete());
  EXPECT_EQ(both - flops_of(b, {unknown}), (Flops{.f32 = 7 * kOne}));
}

TEST(Flops, OfBranchesAreThoseOfTheDearest) {
  Builder b;
  const Value x = b.parameter(f32({4, 4})), p = b.parameter(pred());
  const Values made = b.if_(
      p, [&](Builder& b, std::span<const Value>) { return Values{b.add(x, x)}; },
      [&](Builder& b, std::span<const Value>) { return Values{b.dot_general(x, x, kMatrices)}; });
  EXPECT_EQ(flops_of(b, made), (Flops{.f32 = 2.0 * 4 * 4 * 4}));
}

// The loop counts as one product, and the other branch has two: nobody knows which of them is the dearest.
TEST(Flops, OfABranchWithALoopAreIncompleteInEitherOrder) {
  constexpr double kOne = 2.0 * 4 * 8 * 8;
  for (const bool loop_is_first : {true, false}) {
    Builder b;
    const Value x = b.parameter(f32({4, 8})), w = b.parameter(f32({8, 8})), p = b.parameter(pred());
    const Region unknown = [&](Builder& b, std::span<const Value>) { return Values{loop(b, x, w, 7, 2)}; };
    const Region two = [&](Builder& b, std::span<const Value>) {
      return Values{b.dot_general(b.dot_general(x, w, kMatrices), w, kMatrices)};
    };
    const Flops found = flops_of(b, b.if_(p, loop_is_first ? unknown : two, loop_is_first ? two : unknown));
    EXPECT_EQ(found, (Flops{.f32 = 2 * kOne, .loops = 1})) << loop_is_first;
  }
}

}  // namespace
}  // namespace sluice::stablehlo::testing
