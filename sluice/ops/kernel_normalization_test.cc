#include "sluice/ops/kernel_normalization.h"

#include <gmock/gmock.h>

#include "sluice/ops/test_library.h"

namespace sluice::ops {
namespace {

using enum DType;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(KernelNormalization, SmallSumsAreLeftToTheCompiler) {
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

TEST(KernelNormalization, RunningStatisticsMoveInTheCallOfTheMoments) {
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

// Several rows, one after the other in one program, on tensors of f32.
class Rows {
 public:
  Rows() {
    slots_.library = &library_;
    slots_.notes = &notes_;
  }

  Value parameter(const Dims& dims) { return builder_.parameter({kF32, dims}); }

  Values normalize(Value x, bool affine = true) {
    const Value of_channels = parameter({x.dim(1)});
    return emit("aten::native_batch_norm", {{"input", tensor(x)},
                                            {"weight", affine ? tensor(of_channels) : Arg{}},
                                            {"bias", affine ? tensor(of_channels) : Arg{}},
                                            {"running_mean", Arg{}},
                                            {"running_var", Arg{}},
                                            {"training", flag(true)},
                                            {"momentum", number(0.1)},
                                            {"eps", number(1e-5)}});
  }
  Value relu(Value x) { return emit("aten::relu", {{"self", tensor(x)}})[0]; }
  Value add(Value a, Value b, double alpha = 1) {
    return emit("aten::add.Tensor", {{"self", tensor(a)}, {"other", tensor(b)}, {"alpha", number(alpha)}})[0];
  }
  Value relu_gradient(Value g, Value y) {
    return emit("aten::threshold_backward",
                {{"grad_output", tensor(g)}, {"self", tensor(y)}, {"threshold", number(0)}})[0];
  }
  Values normalization_gradient(Value g, Value x, const Values& normalized) {
    Arg all;
    all.kind = Arg::Kind::kInts;
    all.ints = {1, 1, 1};
    return emit("aten::native_batch_norm_backward", {{"grad_out", tensor(g)},
                                                     {"input", tensor(x)},
                                                     {"weight", tensor(parameter({x.dim(1)}))},
                                                     {"running_mean", Arg{}},
                                                     {"running_var", Arg{}},
                                                     {"save_mean", tensor(normalized[1])},
                                                     {"save_invstd", tensor(normalized[2])},
                                                     {"train", flag(true)},
                                                     {"eps", number(1e-5)},
                                                     {"output_mask", all}});
  }

  // Of scores [N, C] whose logarithms of the softmax are given.
  Value cross_entropy_gradient(Value logarithms) {
    const Type number_type{kF32, {}}, labels{kS64, {logarithms.dim(0)}};
    const Value g =
        emit("aten::nll_loss_backward", {{"grad_output", tensor(builder_.parameter(number_type))},
                                         {"self", tensor(logarithms)},
                                         {"target", tensor(builder_.parameter(labels))},
                                         {"weight", Arg{}},
                                         {"reduction", integer(1)},
                                         {"ignore_index", integer(-100)},
                                         {"total_weight", tensor(builder_.parameter(number_type))}})[0];
    return log_softmax_gradient(g, logarithms);
  }
  Value log_softmax_gradient(Value g, Value logarithms) {
    Arg dtype;
    dtype.kind = Arg::Kind::kDType;
    dtype.dtype = kF32;
    return emit("aten::_log_softmax_backward_data", {{"grad_output", tensor(g)},
                                                     {"output", tensor(logarithms)},
                                                     {"dim", integer(1)},
                                                     {"input_dtype", dtype}})[0];
  }

  std::string finish(const Values& results) { return builder_.finish(results, {}); }

 private:
  static Arg tensor(Value value) {
    Arg arg;
    arg.kind = Arg::Kind::kTensor;
    arg.value = value;
    return arg;
  }
  static Arg flag(bool value) {
    Arg arg;
    arg.kind = Arg::Kind::kBool;
    arg.ints = {value};
    return arg;
  }
  static Arg integer(int64_t value) {
    Arg arg;
    arg.kind = Arg::Kind::kInt;
    arg.ints = {value};
    return arg;
  }
  static Arg number(double value) {
    Arg arg;
    arg.kind = Arg::Kind::kScalar;
    arg.constant = true;
    arg.number = value;
    return arg;
  }
  Values emit(std::string_view op, const std::vector<std::pair<std::string, Arg>>& arguments) {
    std::vector<std::string> names;
    std::vector<Arg> args;
    for (const auto& [name, arg] : arguments) {
      names.push_back(name);
      args.push_back(arg);
    }
    Emit e(builder_, op, names, args, slots_);
    return find_row(op)->emit(e);
  }

  const TestLibrary library_{true};
  Fusions notes_;
  Builder builder_;
  TestSlots slots_{builder_};
};

// The line of the call of this kernel; "" when there is none.
std::string line_of(const std::string& text, std::string_view target) {
  const size_t found = text.find("call_target_name = \"" + std::string(target) + "\"");
  if (found == std::string::npos) return "";
  const size_t begin = text.rfind('\n', found) + 1;
  return text.substr(begin, text.find('\n', found) - begin);
}

size_t operands_of(const std::string& line) {
  const size_t open = line.find('('), close = line.find(')', open);
  return line.empty() ? 0
                      : 1 + static_cast<size_t>(std::count(line.begin() + static_cast<int64_t>(open),
                                                           line.begin() + static_cast<int64_t>(close), ','));
}

constexpr const char* kNormalize = "sluice_normalize";
const Dims kLarge = {8, 4, 32, 32};

TEST(KernelNormalization, AReluOfWhatWasNormalizedIsACall) {
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

TEST(KernelNormalization, AResidualSumIsPartOfTheCall) {
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

TEST(KernelNormalization, TheGateOfTheReluIsPartOfTheGradient) {
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

TEST(KernelNormalization, AGateThatARestDecidesIsNot) {
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

TEST(Fusions, TheGradientOfCrossEntropyIsNeverWhole) {
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
}  // namespace sluice::ops
