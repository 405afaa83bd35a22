// The patterns of batch normalization, and that of cross-entropy.
#include <gmock/gmock.h>

#include "sluice/patterns/testing/rows.h"

namespace sluice::patterns {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(BatchNorm, SmallSumsAreLeftToTheCompiler) {
  const TestLibrary all(true);
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

TEST(BatchNorm, RunningStatisticsMoveInTheCallOfTheMoments) {
  const TestLibrary all(true);
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

constexpr const char* kNormalize = "sluice_normalize";
const Dims kLarge = {8, 4, 32, 32};

TEST(BatchNorm, AReluOfWhatWasNormalizedIsACall) {
  for (const bool affine : {true, false}) {
    Rows rows;
    const Value y = rows.relu(rows.normalize(rows.parameter(kLarge), affine)[0]);
    EXPECT_EQ(operands_of(line_of(rows.finish({y}), kNormalize)), 5);
  }
  Rows small;
  EXPECT_EQ(
      line_of(small.finish({small.relu(small.normalize(small.parameter({8, 4, 8, 8}))[0])}), kNormalize), "");
  Rows other;  // a ReLU of something else
  EXPECT_EQ(line_of(other.finish({other.relu(other.parameter(kLarge))}), kNormalize), "");
}

TEST(BatchNorm, AResidualSumIsPartOfTheCall) {
  for (const bool first : {true, false}) {
    Rows rows;
    const Value y = rows.normalize(rows.parameter(kLarge))[0], skipped = rows.parameter(kLarge);
    const Value sum = first ? rows.add(y, skipped) : rows.add(skipped, y);
    EXPECT_EQ(operands_of(line_of(rows.finish({rows.relu(sum)}), kNormalize)), 6);
  }
  Rows both;
  const Value a = both.normalize(both.parameter(kLarge))[0], b = both.normalize(both.parameter(kLarge))[0];
  EXPECT_EQ(operands_of(line_of(both.finish({both.relu(both.add(a, b))}), kNormalize)), 10);
}

TEST(BatchNorm, TheGateOfTheReluIsPartOfTheGradient) {
  Rows rows;
  const Value x = rows.parameter(kLarge);
  const Values normalized = rows.normalize(x);
  const Value g = rows.relu_gradient(rows.parameter(kLarge), rows.relu(normalized[0]));
  const std::string text = rows.finish(rows.normalization_gradient(g, x, normalized));
  EXPECT_EQ(operands_of(line_of(text, "sluice_channel_sums")), 6);
  const std::string gradient = line_of(text, "sluice_normalization_gradient");
  EXPECT_EQ(operands_of(gradient), 8);
  EXPECT_THAT(gradient, HasSubstr("output_operand_aliases"));
}

TEST(BatchNorm, AGateThatARestDecidesIsNot) {
  Rows rows;
  const Value x = rows.parameter(kLarge);
  const Values normalized = rows.normalize(x);
  const Value y = rows.relu(rows.add(normalized[0], rows.parameter(kLarge)));
  const Value g = rows.relu_gradient(rows.parameter(kLarge), y);
  const std::string text = rows.finish(rows.normalization_gradient(g, x, normalized));
  EXPECT_EQ(operands_of(line_of(text, "sluice_channel_sums")), 4);
  EXPECT_EQ(operands_of(line_of(text, "sluice_normalization_gradient")), 7);
  EXPECT_THAT(line_of(text, "sluice_normalization_gradient"), Not(HasSubstr("output_operand_aliases")));
}

TEST(CrossEntropyGradient, TheGradientOfCrossEntropyIsNeverWhole) {
  const Dims scores = {128, 256};
  Rows rows;
  const Value y = rows.parameter(scores);
  const std::string text = rows.finish({rows.cross_entropy_gradient(y)});
  EXPECT_THAT(text, Not(HasSubstr("custom_call")));
  EXPECT_THAT(text, Not(HasSubstr("stablehlo.reduce")));
  Rows other;  // of another loss
  const Value g = other.log_softmax_gradient(other.parameter(scores), other.parameter(scores));
  EXPECT_THAT(other.finish({g}), HasSubstr("sluice_softmax_gradient"));
}

}  // namespace
}  // namespace sluice::patterns
