#include "sluice/stablehlo/partitions.h"

#include "sluice/stablehlo/rewriter.h"
#include "sluice/stablehlo/test_support.h"

namespace sluice::stablehlo {
namespace {

using testing::f32;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::rejection;

// x [8, 4] is replaced by x + y; the sum of both is the second result, a complex number the third.
std::string step() {
  Builder b;
  const Value x = b.parameter(f32({8, 4})), y = b.parameter(f32({8, 4}));
  const Value sum = b.add(x, y);
  const Value z = b.complex(sum, y);
  const Donation donations[] = {{Donation::Kind::kAliasOutput, 0}, {}};
  const Value results[] = {sum, b.reduce_sum(sum, {0, 1}), z};
  return b.finish(results, donations);
}

const Mesh& mesh() {
  static const auto* all = new Mesh({{"data", 2}, {"fsdp", 2}});
  return *all;
}

TEST(Partitions, OnlyTheSignatureAndTheMeshChange) {
  const Layout rows = batch_layout(2), columns = Layout::along(2, 1, {"fsdp"}, 1);
  const std::string text =
      with_layouts(step(), {mesh(), {columns, rows}, {columns, Layout(), Layout::replicated(2)}});
  const std::string head =
      "module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 4 : i32} {\n"
      "  sdy.mesh @mesh = <[\"data\"=2, \"fsdp\"=2]>\n"
      "  func.func public @main("
      "%arg0: tensor<8x4xf32> {tf.aliasing_output = 0 : i32, "
      "sdy.sharding = #sdy.sharding<@mesh, [{}, {\"fsdp\"}p1]>}, "
      "%arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"data\", \"fsdp\"}, {}]>}) -> ("
      "tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"fsdp\"}p1]>}, "
      "tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}, "
      "tensor<8x4xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {\n";
  ASSERT_EQ(text.substr(0, head.size()), head);
  const std::string plain = step();
  EXPECT_EQ(text.substr(head.size()), plain.substr(plain.find(") {\n") + 4));
}

// A region of blocks has no slices or pads that the partitioner sees, so none is changed.
TEST(Partitions, ARegionOfBlocksStays) {
  const Mesh mesh({{"data", 2}, {"fsdp", 2}, {"sequence", 2}});
  const Layout whole = Layout::replicated(2), columns = Layout::along(2, 1, {"sequence"});
  Builder b;
  const Value x = b.parameter(f32({4, 8})), half = b.slice_dim(x, 1, 0, 4);
  Rewriter r(b, {b.slice_dim(half, 1, 0, 2)}, {});
  r.each([&](const Operation& op) {
    if (op.results[0] != half) return Values();
    return r.manual(mesh, {x}, {columns}, {columns}, [&](Builder& inside, std::span<const Value> in) {
      EXPECT_EQ(in[0].dims(), (Dims{4, 4}));
      return Values{r.permute_blocks(inside.slice_dim(in[0], 1, 0, 2), {{0, 1}, {1, 0}})};
    });
  });
  EXPECT_THAT(rejection([&] { (void)r.manual(mesh, {x}, {}, {}, {}); }), HasSubstr("a layout for each of 1"));
  const Values results = r.finish();
  const std::string text = with_layouts(b.finish(results, {}), {mesh, {whole}, {whole}});
  EXPECT_THAT(text, HasSubstr("in_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {\"sequence\"}]>]>, "
                              "manual_axes = #sdy<manual_axes{\"data\", \"fsdp\", \"sequence\"}>, "
                              "out_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {\"sequence\"}]>]>"));
  EXPECT_THAT(text, HasSubstr("\"sdy.return\"("));
  size_t constraints = 0;
  for (size_t at = text.find("sharding_constraint"); at != std::string::npos;
       at = text.find("sharding_constraint", at + 1))
    ++constraints;
  EXPECT_EQ(constraints, 1u) << text;
}

TEST(Partitions, Refusals) {
  const Layout whole = Layout::replicated(2), scalar;
  const auto with = [&](std::vector<Layout> arguments, std::vector<Layout> results) {
    return rejection([&] { (void)with_layouts(step(), {mesh(), arguments, results}); });
  };
  EXPECT_THAT(with({whole}, {whole, scalar, whole}), HasSubstr("more arguments than the 1 layouts"));
  EXPECT_THAT(with({whole, whole, whole}, {}), HasSubstr("has 2 arguments, found 3 layouts"));
  EXPECT_THAT(with({whole, whole}, {whole, scalar}), HasSubstr("more results than the 2"));
  EXPECT_THAT(with({whole, scalar}, {}),
              HasSubstr("argument 1: the layout [] has 0 dimensions, the tensor has 2"));
  EXPECT_THAT(with({whole, whole}, {whole, scalar, Layout::along(2, 1, {"data", "fsdp"}), whole}),
              HasSubstr("has 3 results, found 4"));
  EXPECT_THAT(rejection([] {
                (void)with_layouts("module {\n", {mesh(), {}, {}});
              }),
              HasSubstr("expected mhlo"));
  const Mesh three({{"fsdp", 3}});
  EXPECT_THAT(rejection([&] {
                (void)with_layouts(step(), {three, {batch_layout(2), whole}, {}});
              }),
              HasSubstr("argument 0: dimension 0 of [8, 4] has 8 elements"));
}

// XLA's partitioner drops the padding of a pad that keeps the shape.
TEST(Partitions, ShiftsBecomeSlicesAndPads) {
  Builder b;
  const Value x = b.parameter(f32({8, 4})), zero = b.splat(0, f32());
  const Value results[] = {b.pad(x, zero, {1, -2}, {-1, 2}), b.pad(x, zero, {9, 0}, {-9, 0}),
                           b.pad(x, zero, {1, 0}, {0, 0})};
  const Donation donations[] = {{}};
  const Layout whole = Layout::replicated(2);
  const std::string text =
      with_layouts(b.finish(results, donations), {mesh(), {whole}, {whole, whole, whole}});
  EXPECT_THAT(text,
              HasSubstr("{start_indices = array<i64: 0, 2>, limit_indices = array<i64: 7, 4>, strides = "
                        "array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<7x2xf32>"));
  EXPECT_THAT(text, HasSubstr("{edge_padding_low = array<i64: 1, 0>, edge_padding_high = array<i64: 0, 2>, "
                              "interior_padding = array<i64: 0, 0>} : (tensor<7x2xf32>, tensor<f32>) -> "
                              "tensor<8x4xf32>"));
  // Nothing of the operand is left.
  EXPECT_THAT(text, HasSubstr("(tensor<8x4xf32>) -> tensor<0x4xf32>"));
  EXPECT_THAT(text, HasSubstr("(tensor<0x4xf32>, tensor<f32>) -> tensor<8x4xf32>"));
  // A pad that makes its operand larger stays as it is.
  EXPECT_THAT(text, HasSubstr("(tensor<8x4xf32>, tensor<f32>) -> tensor<9x4xf32>"));
}

// XLA's partitioner adds up the parts of an image over too many devices.
TEST(Partitions, ConvolutionsSeeWholeImages) {
  const auto text_over = [](const Mesh& mesh) {
    Builder b;
    const Value x = b.parameter(f32({4, 2, 8, 6})), w = b.parameter(f32({3, 2, 3, 3}));
    // As the gradient of a weight swaps the first two dimensions of both.
    const ConvolutionDims dims{.input_batch = 1,
                               .input_feature = 0,
                               .input_spatial = {2, 3},
                               .kernel_output_feature = 1,
                               .kernel_input_feature = 0,
                               .kernel_spatial = {2, 3},
                               .output_batch = 1,
                               .output_feature = 0,
                               .output_spatial = {2, 3}};
    const Value y = b.parameter(f32({4, 3, 6, 4}));
    const ConvolutionWindow window{
        .strides = {1, 1}, .padding = {{0, 0}, {0, 0}}, .lhs_dilation = {1, 1}, .rhs_dilation = {1, 1}};
    const Value results[] = {b.convolution(x, y, dims, window), b.add(w, w)};
    const Layout whole = Layout::replicated(4);
    return with_layouts(b.finish(results, std::vector<Donation>(3)),
                        {mesh, {whole, whole, whole}, {whole, whole}});
  };
  const std::string text = text_over(mesh());
  EXPECT_THAT(text, HasSubstr("    %left0 = sdy.sharding_constraint %arg0 <@mesh, [{?}, {?}, {}, {}]> : "
                              "tensor<4x2x8x6xf32>\n"
                              "    %right0 = sdy.sharding_constraint %arg2 <@mesh, [{?}, {?}, {}, {}]> : "
                              "tensor<4x3x6x4xf32>\n"
                              "    %made0 = \"stablehlo.convolution\"(%left0, %right0) {window_strides"));
  EXPECT_THAT(text, HasSubstr(" : (tensor<4x2x8x6xf32>, tensor<4x3x6x4xf32>) -> tensor<3x2x3x3xf32>\n"
                              "    %0 = sdy.sharding_constraint %made0 <@mesh, [{?}, {?}, {}, {}]> : "
                              "tensor<3x2x3x3xf32>\n"));
  // Over one axis, XLA's partitioner is right.
  EXPECT_THAT(text_over(Mesh({{"fsdp", 4}, {"tensor", 1}})), Not(HasSubstr("sharding_constraint")));
}

// Over three axes, parts of a dimension that lies over one of them were wrong.
TEST(Partitions, SlicesOverThreeAxesAreOfWholeDimensions) {
  const auto text_over = [](const Mesh& mesh) {
    Builder b;
    const Layout whole = Layout::replicated(2);
    const Value complex = b.parameter({DType::kC64, {4, 6}});
    const Value results[] = {b.slice(b.parameter(f32({4, 6})), {0, 2}, {4, 4}),
                             b.slice(complex, {0, 0}, {2, 6})};
    return with_layouts(b.finish(results, std::vector<Donation>(2)), {mesh, {whole, whole}, {whole, whole}});
  };
  const std::string text = text_over(Mesh({{"data", 2}, {"fsdp", 2}, {"tensor", 2}}));
  EXPECT_THAT(text,
              HasSubstr("    %from0 = sdy.sharding_constraint %arg1 <@mesh, [{?}, {}]> : tensor<4x6xf32>\n"
                        "    %0 = \"stablehlo.slice\"(%from0) {start_indices = "));
  EXPECT_THAT(text,
              HasSubstr("sdy.sharding_constraint %arg0 <@mesh, [{}, {?}]> : tensor<4x6xcomplex<f32>>\n"));
  EXPECT_THAT(text_over(Mesh({{"data", 2}, {"fsdp", 2}})), Not(HasSubstr("sharding_constraint")));
}

// A program without arguments and results keeps its parentheses.
TEST(Partitions, NoArguments) {
  Builder b;
  EXPECT_THAT(with_layouts(b.finish({}, {}), {mesh(), {}, {}}), HasSubstr("@main() -> () {\n"));
}

TEST(LayoutsReadBack, IsWhatWasWritten) {
  const Mesh mesh({{"data", 2}, {"fsdp", 2}});
  const Layout rows = batch_layout(2), columns = Layout::along(2, 1, {"fsdp"}, 1);
  const auto read =
      read_layouts(with_layouts(step(), {mesh, {columns, rows}, {columns, Layout(), Layout::replicated(2)}}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->mesh, mesh);
  ASSERT_EQ(read->arguments.size(), 2u);
  ASSERT_EQ(read->results.size(), 3u);
  EXPECT_EQ(read->arguments[0].type(), "tensor<8x4xf32>");
  EXPECT_EQ(read->arguments[0].layout, columns);
  EXPECT_TRUE(read->arguments[0].taken);
  EXPECT_EQ(read->arguments[1].layout, rows);
  EXPECT_FALSE(read->arguments[1].taken);
  // 8 × 4 × 4 bytes, over 2 and 4 devices.
  EXPECT_EQ(read->arguments[0].bytes(), 128);
  EXPECT_EQ(read->arguments[0].block_bytes(mesh), 64);
  EXPECT_EQ(read->arguments[1].block_bytes(mesh), 32);
  EXPECT_EQ(read->arguments[1].block_type(mesh), "tensor<2x4xf32>");
  EXPECT_EQ(read->results[1].type(), "tensor<f32>");
  EXPECT_EQ(read->results[1].bytes(), 4);
  EXPECT_EQ(read->results[2].type(), "tensor<8x4xcomplex<f32>>");
  EXPECT_EQ(read->results[2].block_bytes(mesh), 256);
}

TEST(LayoutsReadBack, OtherPrograms) {
  EXPECT_FALSE(read_layouts(step()));
  EXPECT_FALSE(read_layouts(""));
  Builder b;
  const auto none = read_layouts(with_layouts(b.finish({}, {}), {Mesh({{"fsdp", 4}}), {}, {}}));
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->arguments.empty() && none->results.empty());
  // Axes that Sluice does not have, and a value without a layout.
  EXPECT_FALSE(read_layouts("sdy.mesh @mesh = <[\"x\"=4]>\nfunc.func public @main() -> () {\n"));
  EXPECT_FALSE(read_layouts(
      "sdy.mesh @mesh = <[\"fsdp\"=4]>\nfunc.func public @main(%arg0: tensor<4xf32>) -> () {\n"));
}

}  // namespace
}  // namespace sluice::stablehlo
