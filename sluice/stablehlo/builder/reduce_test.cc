#include "sluice/stablehlo/test_support.h"

namespace sluice::stablehlo::testing {
namespace {

using ::testing::HasSubstr;

TEST(Reduce, ShapesAndRefusals) {
  Builder b;
  const Value x = b.parameter(f32({2, 3, 4})), i = b.parameter(s32({2, 3, 4})), p = b.parameter(pred({2, 3})),
              zero = b.splat(0, f32()), none = b.splat(0, s32());
  EXPECT_EQ(b.reduce_sum(x, {0, 2}).type(), f32({3}));
  EXPECT_EQ(b.reduce_max(x, {2, 1, 0}).type(), f32());
  EXPECT_EQ(b.reduce_min(i, {1}).type(), s32({2, 4}));
  EXPECT_EQ(b.reduce_product(i, {0}).type(), s32({3, 4}));
  EXPECT_EQ(b.reduce_and(p, {0}).type(), pred({3}));
  EXPECT_EQ(b.reduce_or(p, {1}).type(), pred({2}));
  EXPECT_EQ(b.reduce_max(p, {1}).type(), pred({2}));
  EXPECT_EQ(b.reduce_sum(x, {}), x);
  EXPECT_THAT(rejection([&] { (void)b.reduce_sum(x, {3}); }),
              HasSubstr("different ones of tensor<2x3x4xf32>"));
  EXPECT_NE(rejection([&] { (void)b.reduce_sum(x, {1, 1}); }), "");
  EXPECT_NE(rejection([&] { (void)b.reduce_sum(p, {0}); }), "");
  EXPECT_NE(rejection([&] { (void)b.reduce_or(x, {0}); }), "");
  EXPECT_THAT(rejection([&] {
                (void)b.reduce({&x, 1}, {&none, 1}, {0}, sum_body);
              }),
              HasSubstr("found tensor<i32> for tensor<2x3x4xf32>"));
  EXPECT_NE(rejection([&] { (void)b.reduce({&x, 1}, {}, {0}, sum_body); }), "");
  EXPECT_NE(rejection([&] { (void)b.reduce({&x, 1}, {&zero, 1}, {0}, Region()); }), "");
  EXPECT_THAT(
      rejection([&] {
        (void)b.reduce({&x, 1}, {&zero, 1}, {0}, [](Builder&, std::span<const Value>) { return Values{}; });
      }),
      HasSubstr("its body must return (tensor<f32>), it returns ()"));
  const Value different[] = {x, b.parameter(f32({2}))}, zeros[] = {zero, zero};
  EXPECT_THAT(rejection([&] { (void)b.reduce(different, zeros, {0}, sum_body); }), HasSubstr("one shape"));
}

TEST(Reduce, SeveralOperandsAtOnce) {
  Builder b;
  const Value operands[] = {b.parameter(f32({2, 3})), b.parameter(s32({2, 3}))};
  const Value inits[] = {b.splat(0, f32()), b.splat(0, s32())};
  const Values out = b.reduce(operands, inits, {1}, [](Builder& b, std::span<const Value> in) {
    EXPECT_EQ(in.size(), 4u);
    EXPECT_EQ(in[3].type(), s32());
    return Values{b.add(in[0], in[2]), b.add(in[1], in[3])};
  });
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].type(), f32({2}));
  EXPECT_EQ(out[1].type(), s32({2}));
}

TEST(Reduce, Windows) {
  Builder b;
  const Value x = b.parameter(f32({1, 7})), zero = b.splat(0, f32());
  const auto dims = [&](const Window& window) {
    return b.reduce_window({&x, 1}, {&zero, 1}, window, sum_body)[0].dims();
  };
  Window window;
  window.sizes = {1, 3};
  EXPECT_EQ(dims(window), (Dims{1, 5}));
  window.strides = {1, 2};
  EXPECT_EQ(dims(window), (Dims{1, 3}));
  window.padding = {{0, 0}, {1, 2}};
  EXPECT_EQ(dims(window), (Dims{1, 4}));
  window.window_dilations = {1, 4};
  EXPECT_EQ(dims(window), (Dims{1, 1}));
  window.base_dilations = {1, 2};
  EXPECT_EQ(dims(window), (Dims{1, 4}));
  Window large;
  large.sizes = {1, 8};
  EXPECT_EQ(dims(large), (Dims{1, 0}));

  const auto broken = [&](auto change) {
    Window w;
    w.sizes = {1, 3};
    change(w);
    return rejection([&] { (void)b.reduce_window({&x, 1}, {&zero, 1}, w, sum_body); });
  };
  EXPECT_THAT(broken([](Window& w) { w.sizes = {1, 0}; }), HasSubstr("in dimension 1 size is 0"));
  EXPECT_THAT(broken([](Window& w) { w.strides = {1, 0}; }), HasSubstr("stride 0"));
  EXPECT_THAT(broken([](Window& w) { w.sizes = {3}; }),
              HasSubstr("one entry a dimension of the operand [1, 7]"));
  EXPECT_THAT(broken([](Window& w) { w.padding = {{0, 0}, {-4, -4}}; }), HasSubstr("takes away more"));
  EXPECT_NE(broken([](Window& w) { w.window_dilations = {1, 0}; }), "");
}

TEST(Reduce, SelectAndScatter) {
  Builder b;
  const Value x = b.parameter(f32({6})), source = b.parameter(f32({3})), wrong = b.parameter(f32({4})),
              zero = b.splat(0, f32());
  Window window;
  window.sizes = window.strides = {2};
  const Region select = [](Builder& b, std::span<const Value> in) {
    return Values{b.compare(in[0], in[1], Compare::kGe)};
  };
  EXPECT_EQ(b.select_and_scatter(x, source, zero, window, select, sum_body).type(), x.type());
  EXPECT_THAT(rejection([&] { (void)b.select_and_scatter(x, wrong, zero, window, select, sum_body); }),
              HasSubstr("tensor<3xf32>, found tensor<4xf32>"));
  EXPECT_THAT(rejection([&] { (void)b.select_and_scatter(x, source, zero, window, sum_body, sum_body); }),
              HasSubstr("its select must return (tensor<i1>), it returns (tensor<f32>)"));
  window.window_dilations = {2};
  EXPECT_NE(rejection([&] { (void)b.select_and_scatter(x, source, zero, window, select, sum_body); }), "");
}

TEST(Reduce, Sort) {
  Builder b;
  const Value both[] = {b.parameter(f32({2, 3})), b.parameter(s32({2, 3}))};
  const Value uneven[] = {both[0], b.parameter(f32({2}))};
  const Region less = [](Builder& b, std::span<const Value> in) {
    return Values{b.compare(in[0], in[1], Compare::kLt)};
  };
  const Values sorted = b.sort(both, 1, true, less);
  EXPECT_EQ(sorted[0].type(), f32({2, 3}));
  EXPECT_EQ(sorted[1].type(), s32({2, 3}));
  EXPECT_THAT(rejection([&] { (void)b.sort(both, 2, true, less); }), HasSubstr("no dimension 2"));
  EXPECT_THAT(rejection([&] { (void)b.sort(uneven, 0, true, less); }), HasSubstr("one shape"));
  EXPECT_THAT(rejection([&] {
                (void)b.sort({both, 1}, 0, true, sum_body);
              }),
              HasSubstr("its comparator must return"));
  EXPECT_NE(rejection([&] { (void)b.sort({}, 0, true, less); }), "");
  const Values largest = b.top_k(both[0], 2);
  EXPECT_EQ(largest[0].type(), f32({2, 2}));
  EXPECT_EQ(largest[1].type(), s32({2, 2}));
  EXPECT_THAT(rejection([&] { (void)b.top_k(both[0], 4); }), HasSubstr("found 4"));
  EXPECT_THAT(rejection([&] { (void)b.top_k(both[1], 1); }), HasSubstr("must be f32"));
}

TEST(Products, DotGeneral) {
  Builder b;
  const Value x = b.parameter(f32({5, 2, 3})), y = b.parameter(f32({5, 3, 4})),
              i = b.parameter(s32({5, 3, 4}));
  EXPECT_EQ(b.dot_general(x, y, {{0}, {0}, {2}, {1}}).type(), f32({5, 2, 4}));
  EXPECT_EQ(b.dot_general(x, y, {{}, {}, {0, 2}, {0, 1}}).type(), f32({2, 4}));
  EXPECT_EQ(b.dot_general(i, i, {{0}, {0}, {1, 2}, {1, 2}}, DType::kS64).type(), s64({5}));
  EXPECT_THAT(rejection([&] {
                (void)b.dot_general(x, i, {{0}, {0}, {2}, {1}});
              }),
              HasSubstr("one element type"));
  EXPECT_THAT(rejection([&] {
                (void)b.dot_general(x, y, {{0}, {0}, {1}, {1}});
              }),
              HasSubstr("contracting [2] and [3]"));
  EXPECT_THAT(rejection([&] {
                (void)b.dot_general(x, y, {{0}, {0}, {3}, {1}});
              }),
              HasSubstr("of the left operand"));
  EXPECT_THAT(rejection([&] {
                (void)b.dot_general(x, y, {{0}, {0}, {2}, {0}});
              }),
              HasSubstr("of the right operand"));
  EXPECT_NE(rejection([&] { (void)b.dot_general(x, y, {{0}, {}, {2}, {1}}); }), "");
}

ConvolutionDims nchw() {
  ConvolutionDims dims;
  dims.input_spatial = dims.kernel_spatial = dims.output_spatial = {2, 3};
  return dims;
}

ConvolutionWindow unit() {
  ConvolutionWindow window;
  window.strides = window.lhs_dilation = window.rhs_dilation = {1, 1};
  window.padding = {{0, 0}, {0, 0}};
  return window;
}

TEST(Products, Convolution) {
  Builder b;
  const Value x = b.parameter(f32({8, 4, 9, 10})), w = b.parameter(f32({6, 4, 3, 3})),
              g = b.parameter(f32({6, 2, 3, 3})), h = b.parameter({DType::kF16, {6, 4, 3, 3}}),
              r3 = b.parameter(f32({6, 4, 3}));
  EXPECT_EQ(b.convolution(x, w, nchw(), unit()).type(), f32({8, 6, 7, 8}));
  ConvolutionWindow window = unit();
  window.strides = {2, 1};
  window.padding = {{1, 1}, {0, -1}};
  window.rhs_dilation = {1, 2};
  window.lhs_dilation = {2, 1};
  EXPECT_EQ(b.convolution(x, w, nchw(), window, DType::kF64).type(), (Type{DType::kF64, {8, 6, 9, 5}}));
  window = unit();
  window.feature_groups = 2;
  EXPECT_EQ(b.convolution(x, g, nchw(), window).type(), f32({8, 6, 7, 8}));
  window = unit();
  window.batch_groups = 2;
  EXPECT_EQ(b.convolution(x, w, nchw(), window).type(), f32({4, 6, 7, 8}));

  const auto broken = [&](Value kernel, auto change) {
    ConvolutionDims dims = nchw();
    ConvolutionWindow window = unit();
    change(dims, window);
    return rejection([&] { (void)b.convolution(x, kernel, dims, window); });
  };
  const auto nothing = [](ConvolutionDims&, ConvolutionWindow&) {};
  EXPECT_THAT(broken(h, nothing), HasSubstr("one element type and one rank"));
  EXPECT_NE(broken(r3, nothing), "");
  EXPECT_THAT(broken(g, nothing), HasSubstr("found 4 and 2 x 1"));
  EXPECT_THAT(broken(w,
                     [](ConvolutionDims& d, ConvolutionWindow&) {
                       d.input_spatial = {2, 2};
                     }),
              HasSubstr("dimension numbers of the input"));
  EXPECT_THAT(broken(w, [](ConvolutionDims& d, ConvolutionWindow&) { d.output_feature = 0; }),
              HasSubstr("dimension numbers of the output"));
  EXPECT_THAT(broken(w, [](ConvolutionDims&, ConvolutionWindow& w) { w.strides = {1}; }),
              HasSubstr("one entry a spatial dimension (2)"));
  EXPECT_THAT(broken(w, [](ConvolutionDims&, ConvolutionWindow& w) { w.batch_groups = 3; }),
              HasSubstr("batch (8)"));
  EXPECT_THAT(
      broken(g, [](ConvolutionDims&, ConvolutionWindow& w) { w.feature_groups = w.batch_groups = 2; }),
      HasSubstr("only one kind"));
  EXPECT_THAT(broken(w,
                     [](ConvolutionDims&, ConvolutionWindow& w) {
                       w.rhs_dilation = {0, 1};
                     }),
              HasSubstr("window dilation 0"));
}

}  // namespace
}  // namespace sluice::stablehlo::testing
