// What single rows become for a target with kernels.
#include <gmock/gmock.h>

#include <functional>

#include "sluice/base/error.h"
#include "sluice/patterns/testing/rows.h"

namespace sluice::patterns {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct ConvolutionCall : TestCall {
  explicit ConvolutionCall(DType dtype) : TestCall("aten::convolution_overrideable") {
    tensor("input", {dtype, {2, 8, 9, 9}}).tensor("weight", {dtype, {16, 4, 3, 3}}).none("bias");
    ints("stride", {2, 2}).ints("padding", {1, 1}).ints("dilation", {1, 1}).flag("transposed", false);
    ints("output_padding", {0, 0}).integer("groups", 2);
  }
};

TEST(Calls, AConvolutionIsCalledWhereThereIsAKernel) {
  ConvolutionCall call(kF32), again(kF32), rough(kBF16);
  const TestLibrary all(true), none(false);
  const std::string text = text_of(call, all);
  EXPECT_THAT(text, HasSubstr("call_target_name = \"sluice_convolution\""));
  EXPECT_EQ(all.convolution.x, (Dims{2, 8, 9, 9}));
  EXPECT_EQ(all.convolution.y, (Dims{2, 16, 5, 5}));
  EXPECT_EQ(all.convolution.groups, 2);
  EXPECT_THAT(text_of(again, none), HasSubstr("stablehlo.convolution"));
  EXPECT_THAT(text_of(rough, all), HasSubstr("stablehlo.convolution"));
}

constexpr std::string_view kFirst = "channels_first = 1", kLast = "channels_first = 0";

TEST(Calls, AConvolutionWhoseActivationsNoOtherLayerSeesTakesThemAsTheyCome) {
  Rows r;
  const Values p = r.parameters({{2, 8, 9, 9}, {16, 8, 3, 3}, {2, 16, 9, 9}});
  const Value y = r.convolution(r.relu(p[0]), p[1]);
  const std::string text = r.finish({r.relu(r.add(y, p[2])), r.b.reduce_sum(p[2], {0, 2, 3})});
  EXPECT_THAT(text, HasSubstr(kFirst));
  EXPECT_THAT(text, Not(HasSubstr(kLast)));
  EXPECT_THAT(text, HasSubstr("operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, "
                              "dense<[3, 2, 1, 0]> : tensor<4xindex>]"));
}

TEST(Calls, AConvolutionAlongOneDimensionIsLoneBetweenReshapes) {
  const auto text = [](const Dims& x, const Dims& y) {
    Rows r;
    const Values p = r.parameters({x, {8, 8, 3, 3}});
    return r.finish({r.b.reshape(r.convolution(r.b.reshape(p[0], {2, 8, 1, 64}), p[1]), y)});
  };
  EXPECT_THAT(text({2, 8, 64}, {2, 8, 64}), HasSubstr(kFirst));
  EXPECT_THAT(text({2, 8, 8, 8}, {2, 8, 64}), HasSubstr(kLast));
  EXPECT_THAT(text({2, 8, 64}, {2, 8, 8, 8}), HasSubstr(kLast));
}

TEST(Calls, ABiasIsAddedByALoneConvolutionThatNothingElseReads) {
  enum class Case { kLone, kReadTwice, kFollowed };
  const auto text = [](Case which) {
    Rows r;
    const Values p = r.parameters({{2, 8, 9, 9}, {16, 8, 3, 3}, {16}, {8, 16, 3, 3}});
    const Value y = r.convolution(p[0], p[1]), sum = r.b.add(r.b.broadcast_in_dim(p[2], y.dims(), {1}), y);
    if (which == Case::kReadTwice) return r.finish({sum, y});
    return r.finish({which == Case::kLone ? sum : r.convolution(sum, p[3])});
  };
  const std::string_view with_bias = "\"stablehlo.custom_call\"(%arg0, %arg1, %arg2)";
  EXPECT_THAT(text(Case::kLone), HasSubstr(std::string(with_bias)));
  EXPECT_THAT(text(Case::kLone), Not(HasSubstr("stablehlo.add")));
  EXPECT_THAT(text(Case::kReadTwice), Not(HasSubstr(std::string(with_bias))));
  EXPECT_THAT(text(Case::kFollowed), Not(HasSubstr(std::string(with_bias))));
}

TEST(Calls, ABiasGradientIsASumOfPlanesWhereTheseLieTogether) {
  const auto text = [](const Dims& over, bool normalized) {
    Rows r;
    const Values p = r.parameters({{8, 8, 32, 32}, {16, 8, 3, 3}});
    const Value y = r.convolution(p[0], p[1]);
    return r.finish({normalized ? r.normalize(y)[0] : y, r.b.reduce_sum(r.relu(y), over)});
  };
  EXPECT_THAT(text({0, 2, 3}, false), HasSubstr("sluice_sum_of_planes"));
  EXPECT_THAT(text({0, 2}, false), Not(HasSubstr("sluice_sum_of_planes")));
  EXPECT_THAT(text({0, 2, 3}, true), Not(HasSubstr("sluice_sum_of_planes")));
}

TEST(Calls, LayersThatFollowEachOtherHaveTheChannelsLast) {
  const auto two_convolutions = [](Rows& r) {
    const Values p = r.parameters({{2, 8, 9, 9}, {8, 8, 3, 3}});
    return r.convolution(r.relu(r.convolution(p[0], p[1])), p[1]);
  };
  const auto normalized = [](Rows& r) {
    const Values p = r.parameters({{2, 8, 9, 9}, {8, 8, 3, 3}});
    return r.normalize(r.convolution(p[0], p[1]))[0];
  };
  const auto pooled = [](Rows& r) {
    const Values p = r.parameters({{2, 8, 9, 9}, {8, 8, 3, 3}});
    return r.max_pooling(r.convolution(p[0], p[1]));
  };
  // A matrix of positions and channels, as a transformer takes it from an image.
  const auto reordered = [](Rows& r) {
    const Values p = r.parameters({{2, 8, 9, 9}, {8, 8, 3, 3}});
    return r.b.transpose(r.convolution(p[0], p[1]), {0, 2, 3, 1});
  };
  for (const std::function<Value(Rows&)>& program :
       std::initializer_list<std::function<Value(Rows&)>>{two_convolutions, normalized, pooled, reordered}) {
    Rows r;
    const std::string text = r.finish({program(r)});
    EXPECT_THAT(text, HasSubstr(kLast));
    EXPECT_THAT(text, Not(HasSubstr(kFirst)));
    EXPECT_THAT(text, HasSubstr("operand_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>, "
                                "dense<[3, 2, 1, 0]> : tensor<4xindex>]"));
  }
}

TEST(Calls, AProductTakesATransposedOperandAsItLies) {
  const TestLibrary all(true);
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

TEST(Calls, DimensionsThatDoNotFitAreTheCompilersError) {
  const TestLibrary all(true);
  TestCall call("aten::mm");
  call.tensor("self", {kF32, {64, 32}}).tensor("mat2", {kF32, {33, 48}});
  EXPECT_THROW((void)text_of(call, all), Error);
}

TEST(Calls, ABatchWhoseRowsLieTogetherIsNotTornApart) {
  const TestLibrary all(true);
  TestCall call("aten::bmm");
  call.tensor("self", {kF32, {8, 64, 32}});
  // Heads of [positions, heads, 32] as attention takes the keys.
  Arg keys;
  keys.kind = Arg::Kind::kTensor;
  keys.value = call.builder.transpose(call.builder.parameter({kF32, {48, 8, 32}}), {1, 2, 0});
  call.add("mat2", keys);
  EXPECT_THAT(text_of(call, all), HasSubstr("tensor<8x48x32xf32>"));
  EXPECT_TRUE(all.product.transposed_b);
  EXPECT_EQ(all.product.n, 48);
  EXPECT_EQ(all.product.k, 32);
}

TEST(Calls, SumsOverTheFirstDimensionsAreAKernels) {
  const TestLibrary all(true);
  const auto text = [&](const Dims& dims, const Dims& over) {
    TestCall call("aten::sum.dim_IntList");
    call.tensor("self", {kF32, dims}).ints("dim", over).flag("keepdim", false);
    return text_of(call, all);
  };
  EXPECT_THAT(text({64, 32, 256}, {1, 0}), HasSubstr("sluice_sum_of_rows"));
  EXPECT_THAT(text({64, 32, 256}, {0, 2}), Not(HasSubstr("sluice_sum_of_rows")));
  EXPECT_THAT(text({64, 32, 256}, {0, 1, 2}), Not(HasSubstr("sluice_sum_of_rows")));
  EXPECT_THAT(text({8, 8192}, {0}), Not(HasSubstr("sluice_sum_of_rows"))) << "few rows";
  EXPECT_THAT(text({64, 16}, {0}), Not(HasSubstr("sluice_sum_of_rows"))) << "small";
}

TEST(Calls, ConcatenationsOfManyAreMadeInGroups) {
  const auto groups = [](size_t count, bool constants = false, int64_t rows = 1) {
    Builder b;
    const Value first = b.parameter({kF32, {1, 8}});
    Values parts = {first};
    while (parts.size() < count)
      parts.push_back(constants ? b.splat(2, {kF32, {rows, 8}}) : b.parameter({kF32, {rows, 8}}));
    if (constants) parts[0] = parts[1];
    const std::string text = rewritten(b, {b.concatenate(parts, 0)}, TestLibrary(true));
    size_t found = 0;
    for (size_t at = text.find("optimization_barrier"); at != std::string::npos;
         at = text.find("optimization_barrier", at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(groups(64), 0u);
  EXPECT_EQ(groups(65), 3u);
  EXPECT_EQ(groups(1024), 32u);
  EXPECT_EQ(groups(1025), 33u + 2u) << "groups of groups";
  EXPECT_EQ(groups(100, true), 0u) << "constants";
  EXPECT_EQ(groups(100, false, 0), 4u) << "all but one are empty";
}

// A call of attention or, with `backward`, of its gradient.
std::string attention_text(const TestLibrary& library, Type q, Type k, bool backward,
                           std::optional<Type> mask = {}) {
  const std::string name = "aten::_scaled_dot_product_flash_attention_for_cpu";
  TestCall call(backward ? name + "_backward" : name);
  if (backward) call.tensor("grad_out", q);
  call.tensor("query", q).tensor("key", k).tensor("value", k);
  if (backward) call.tensor("out", q).tensor("logsumexp", {kF32, {q.dims[0], q.dims[1], q.dims[2]}});
  call.number("dropout_p", 0, true).flag("is_causal", !mask);
  if (mask) {
    call.tensor("attn_mask", *mask);
  } else {
    call.none("attn_mask");
  }
  return text_of(call.none("scale"), library);
}

TEST(Calls, AttentionTakesMasksAndSharedHeadsOfKeys) {
  const TestLibrary all(true);
  const Type q{kF32, {2, 4, 64, 64}}, k{kF32, {2, 2, 96, 64}};
  for (const Type& mask : {Type{DType::kPred, {2, 1, 1, 96}}, Type{kF32, {64, 1}}}) {
    const std::string text = attention_text(all, q, k, false, mask),
                      backward = attention_text(all, q, k, true, mask);
    const std::string added = mask.dims.size() == 4 ? "tensor<2x1x1x96xf32>" : "tensor<1x1x64x96xf32>";
    EXPECT_THAT(text, HasSubstr("(tensor<2x64x4x64xf32>, tensor<2x96x2x64xf32>, tensor<2x96x2x64xf32>, " +
                                added + ") -> (tensor<2x64x4x64xf32>, tensor<2x4x64xf32>)"));
    EXPECT_THAT(backward, HasSubstr(added + ") -> (tensor<2x64x4x64xf32>, tensor<2x96x2x64xf32>, "
                                            "tensor<2x96x2x64xf32>)"));
  }
  EXPECT_THROW((void)attention_text(all, q, k, false, Type{kF32, {3, 96}}), Error) << "does not fit";
  EXPECT_THROW((void)attention_text(all, q, k, false, Type{DType::kS32, {64, 96}}), Error) << "of integers";
}

TEST(Calls, AttentionIsAKernelsOnTensorsAsModelsMakeThem) {
  const TestLibrary all(true), none(false);
  const Type q{kF32, {2, 4, 64, 64}}, k{kF32, {2, 4, 96, 64}};
  const std::string text = attention_text(all, q, k, false), backward = attention_text(all, q, k, true);
  EXPECT_THAT(text, HasSubstr("\"sluice_attention\""));
  EXPECT_THAT(text, HasSubstr("causal = 1"));
  EXPECT_THAT(text, HasSubstr("scale = 1.25"));
  EXPECT_THAT(text, HasSubstr("(tensor<2x64x4x64xf32>, tensor<2x96x4x64xf32>, tensor<2x96x4x64xf32>) -> "
                              "(tensor<2x64x4x64xf32>, tensor<2x4x64xf32>)"));
  EXPECT_EQ(all.attention.queries, 64);
  EXPECT_EQ(all.attention.keys, 96);
  EXPECT_EQ(all.attention.size, 64);
  EXPECT_THAT(backward, HasSubstr("\"sluice_attention_gradient\""));
  EXPECT_THAT(attention_text(none, q, k, false), HasSubstr("stablehlo.dot_general"));
  EXPECT_THAT(attention_text(none, q, k, true), HasSubstr("stablehlo.dot_general"));
  const Type rough{kBF16, q.dims}, small{kF32, {1, 1, 4, 8}};
  EXPECT_THAT(attention_text(all, rough, rough, false), Not(HasSubstr("sluice_attention")));
  EXPECT_THAT(attention_text(all, small, small, false), Not(HasSubstr("sluice_attention")));
}

TEST(Calls, AttentionTakesSeedsOfDropout) {
  const TestLibrary all(true), none(false);
  const Type q{kF32, {2, 4, 64, 64}}, k{kF32, {2, 2, 96, 64}}, mask{DType::kPred, {2, 1, 1, 96}};
  const auto text = [&](const TestLibrary& library, bool backward) {
    const std::string name = "sluice::attention_with_dropout";
    TestCall call(backward ? name + "_backward" : name);
    if (backward) call.tensor("grad_out", q);
    call.tensor("query", q).tensor("key", k).tensor("value", k);
    if (backward)
      call.tensor("out", q).tensor("logsumexp", {kF32, {2, 4, 64}}).tensor("state", {DType::kU64, {2}});
    call.tensor("attn_mask", mask).number("dropout_p", 0.1).flag("is_causal", false);
    return text_of(call.none("scale"), library);
  };
  // The mask, the seeds' bits and the probability, behind what there is without dropout.
  const std::string last = ", tensor<2x1x1x96xf32>, tensor<2x2x4x64xf32>, tensor<f32>) -> ";
  for (const bool backward : {false, true}) {
    const std::string made = text(all, backward);
    EXPECT_THAT(made, HasSubstr(backward ? "\"sluice_attention_gradient\"" : "\"sluice_attention\""));
    EXPECT_THAT(made, HasSubstr("dropout = 1"));
    EXPECT_THAT(made, HasSubstr(last));
    EXPECT_THAT(text(none, backward), Not(HasSubstr("sluice_attention")));
  }
}

TEST(Calls, AttentionReadsWhatOneLayerMadeAsItLies) {
  const TestLibrary all(true);
  // q, k and v: these heads of a tensor [2, 64, 12 × 64], or of another one for each.
  const auto text = [&](const std::vector<int64_t>& first_heads, bool backward, bool one_tensor = true) {
    const std::string name = "aten::_scaled_dot_product_flash_attention_for_cpu";
    TestCall call(backward ? name + "_backward" : name);
    Builder& b = call.builder;
    const Type type{kF32, {2, 4, 64, 64}};
    if (backward) call.tensor("grad_out", type);
    Value from = b.parameter({kF32, {2, 64, 768}});
    for (size_t i = 0; i < 3; ++i) {
      if (!one_tensor) from = b.parameter({kF32, {2, 64, 768}});
      const Value heads = b.reshape(b.reshape(from, {2 * 64 * 768}), {2, 64, 12, 64});
      Arg part;
      part.kind = Arg::Kind::kTensor;
      part.value = b.transpose(b.slice_dim(heads, 2, first_heads[i], first_heads[i] + 4), {0, 2, 1, 3});
      call.add(std::vector<std::string>{"query", "key", "value"}[i], part);
    }
    if (backward) call.tensor("out", type).tensor("logsumexp", {kF32, {2, 4, 64}});
    call.number("dropout_p", 0, true).flag("is_causal", false).none("attn_mask").none("scale");
    return text_of(call, all);
  };
  const std::string one_operand = "\"stablehlo.custom_call\"(%arg0) {call_target_name = \"sluice_attention\"";
  const std::string one_result = "-> tensor<2x64x768xf32>";
  EXPECT_THAT(text({0, 4, 8}, false), HasSubstr(one_operand));
  EXPECT_THAT(text({0, 4, 8}, true), HasSubstr(one_result));
  EXPECT_THAT(text({4, 0, 8}, false), Not(HasSubstr(one_operand))) << "in another order";
  EXPECT_THAT(text({4, 0, 8}, true), Not(HasSubstr(one_result))) << "in another order";
  EXPECT_THAT(text({0, 4, 8}, false, false), Not(HasSubstr(one_operand))) << "of three tensors";
}

TEST(Calls, AttentionRefusesWhatDoesNotFit) {
  const TestLibrary none(false);
  const Type q{kF32, {2, 4, 5, 8}}, other_heads{kF32, {2, 3, 5, 8}}, flat{kF32, {8, 5, 8}};
  EXPECT_THROW((void)attention_text(none, q, other_heads, false), Error);
  EXPECT_THROW((void)attention_text(none, flat, flat, false), Error);
}

TEST(Calls, SoftmaxAlongTheLastDimensionIsAKernels) {
  const TestLibrary all(true);
  const auto text = [&](const char* op, const Dims& dims, int64_t dim) {
    TestCall call(op);
    call.tensor("self", {kF32, dims}).integer("dim", dim).flag("half_to_float", false);
    return text_of(call, all);
  };
  EXPECT_THAT(text("aten::_softmax", {128, 256}, -1), HasSubstr("sluice_softmax"));
  EXPECT_THAT(text("aten::_log_softmax", {128, 256}, 1), HasSubstr("logarithm = 1"));
  EXPECT_THAT(text("aten::_softmax", {128, 256}, 0), Not(HasSubstr("sluice_softmax")));
  EXPECT_THAT(text("aten::_softmax", {128, 10}, 1), Not(HasSubstr("sluice_softmax"))) << "small";
}

// The product's result is written to as it is: of its reshape XLA would make a copy first.
TEST(Calls, ACallInPlaceTakesItsOperandBeforeReshapes) {
  const auto text = [](int64_t columns, const std::function<Values(Rows&, Value)>& program) {
    Rows r;
    const Value product = r.mm(r.parameter({80, 48}), r.parameter({48, 512}));
    return r.finish(program(r, r.b.reshape(r.b.reshape(product, {80 * 512}), {10, 4096 / columns, columns})));
  };
  const auto softmax = [](Rows& r, Value x) { return Values{r.softmax(x)}; };
  const auto lstm = [](Rows& r, Value gates) { return r.lstm(gates); };
  const std::string of_softmax = text(512, softmax);
  EXPECT_THAT(line_of(of_softmax, "sluice_softmax"), HasSubstr("(tensor<80x512xf32>) -> tensor<80x512xf32>"));
  EXPECT_THAT(of_softmax, HasSubstr("-> (tensor<10x8x512xf32>)")) << "main's result is as before";
  EXPECT_THAT(line_of(text(256, softmax), "sluice_softmax"), HasSubstr("(tensor<10x16x256xf32>)"))
      << "other rows";
  const auto gradient = [](Rows& r, Value g) { return Values{r.softmax_gradient(g)}; };
  EXPECT_THAT(line_of(text(512, gradient), "sluice_softmax_gradient"),
              HasSubstr("(tensor<80x512xf32>, tensor<80x512xf32>) -> tensor<80x512xf32>"))
      << "the other operand has the same rows";
  const std::string of_lstm = text(512, lstm);
  for (const char* target : {"sluice_lstm", "sluice_lstm_gradient"})
    EXPECT_THAT(line_of(of_lstm, target), HasSubstr("-> (tensor<80x512xf32>, ")) << target;
}

TEST(Calls, GeluIsAKernels) {
  const TestLibrary all(true);
  const auto text = [&](const Type& x, const char* approximate, bool backward) {
    TestCall call(backward ? "aten::gelu_backward" : "aten::gelu");
    if (backward) call.tensor("grad_output", x);
    return text_of(call.tensor("self", x).text("approximate", approximate), all);
  };
  const Type x{kF32, {128, 256}};
  EXPECT_THAT(text(x, "none", false), HasSubstr("\"sluice_gelu\""));
  EXPECT_THAT(text(x, "none", true), HasSubstr("\"sluice_gelu_gradient\""));
  EXPECT_THAT(text(x, "tanh", false), Not(HasSubstr("sluice_gelu")));
  EXPECT_THAT(text(x, "tanh", true), Not(HasSubstr("sluice_gelu")));
  EXPECT_THAT(text({kF32, {12, 256}}, "none", false), Not(HasSubstr("sluice_gelu"))) << "small";
  EXPECT_THAT(text({kBF16, {128, 256}}, "none", true), Not(HasSubstr("sluice_gelu")));
}

TEST(Calls, AProductTakesItsBias) {
  const TestLibrary all(true);
  const auto text = [&](const Dims& bias, double alpha) {
    TestCall call("aten::addmm");
    call.tensor("self", {kF32, bias}).tensor("mat1", {kF32, {40, 48}}).tensor("mat2", {kF32, {48, 64}});
    return text_of(call.number("beta", 1, /*constant=*/true).number("alpha", alpha, alpha == 1), all);
  };
  const std::string with_bias = "(tensor<40x48xf32>, tensor<48x64xf32>, tensor<64xf32>) -> tensor<40x64xf32>";
  EXPECT_THAT(text({64}, 1), HasSubstr(with_bias));
  EXPECT_THAT(text({64}, 2), Not(HasSubstr(with_bias))) << "the product is scaled";
  EXPECT_THAT(text({40, 64}, 1),
              HasSubstr("(tensor<40x48xf32>, tensor<48x64xf32>, tensor<40x64xf32>) -> tensor<40x64xf32>"));
  EXPECT_THAT(text({1}, 1), HasSubstr("stablehlo.add"));
}

TEST(Calls, LayerNormalizationIsAKernels) {
  const TestLibrary all(true);
  const auto text = [&](const Type& input, bool weight, bool bias) {
    TestCall call("aten::native_layer_norm");
    call.tensor("input", input).ints("normalized_shape", {32, 8});
    weight ? call.tensor("weight", {kF32, {32, 8}}) : call.none("weight");
    bias ? call.tensor("bias", {kF32, {32, 8}}) : call.none("bias");
    call.number("eps", 1e-5, /*constant=*/true);
    return text_of(call, all);
  };
  const Type input{kF32, {2, 64, 32, 8}};
  EXPECT_THAT(text(input, true, true),
              HasSubstr(" : (tensor<2x64x32x8xf32>, tensor<f32>, tensor<32x8xf32>, tensor<32x8xf32>) -> "
                        "(tensor<2x64x32x8xf32>, tensor<2x64x1x1xf32>, tensor<2x64x1x1xf32>)"));
  EXPECT_THAT(text(input, true, false),
              HasSubstr(" : (tensor<2x64x32x8xf32>, tensor<f32>, tensor<32x8xf32>) -> "));
  EXPECT_THAT(text(input, false, false), HasSubstr(" : (tensor<2x64x32x8xf32>, tensor<f32>) -> "));
  EXPECT_THAT(text(input, false, true), HasSubstr("tensor<f32>, tensor<32x8xf32>, tensor<32x8xf32>) -> "));
  EXPECT_THAT(text({kF32, {4, 32, 8}}, true, true), Not(HasSubstr("sluice_layer_norm"))) << "small";
  EXPECT_THAT(text({kBF16, {64, 32, 8}}, false, false), Not(HasSubstr("sluice_layer_norm")));
}

TEST(Calls, TheGradientOfLayerNormalizationIsAKernels) {
  const TestLibrary all(true);
  const auto text = [&](DType dtype, int64_t rows, bool weight, const Dims& mask) {
    TestCall call("aten::native_layer_norm_backward");
    call.tensor("grad_out", {dtype, {rows, 256}}).tensor("input", {dtype, {rows, 256}});
    call.ints("normalized_shape", {256}).tensor("mean", {kF32, {rows, 1}}).tensor("rstd", {kF32, {rows, 1}});
    weight ? call.tensor("weight", {kF32, {256}}) : call.none("weight");
    return text_of(call.none("bias").ints("output_mask", mask), all);
  };
  EXPECT_THAT(text(kF32, 64, true, {1, 1, 1}),
              HasSubstr("(tensor<64x256xf32>, tensor<64x256xf32>, tensor<64x1xf32>, tensor<64x1xf32>, "
                        "tensor<256xf32>) -> (tensor<64x256xf32>, tensor<256xf32>, tensor<256xf32>)"));
  const std::string alone = text(kF32, 64, false, {1, 0, 0});
  EXPECT_THAT(alone, HasSubstr("tensor<64x1xf32>, tensor<64x1xf32>) -> tensor<64x256xf32>\n"));
  EXPECT_THAT(text(kF32, 64, true, {0, 1, 1}), Not(HasSubstr("sluice_layer_norm_gradient")));
  EXPECT_THAT(text(kF32, 4, true, {1, 1, 1}), Not(HasSubstr("sluice_layer_norm_gradient"))) << "small";
  EXPECT_THAT(text(kBF16, 64, false, {1, 1, 1}), Not(HasSubstr("sluice_layer_norm_gradient")));
}

}  // namespace
}  // namespace sluice::patterns
