#include "sluice/stablehlo/test_support.h"

namespace sluice::stablehlo::testing {
namespace {

using ::testing::HasSubstr;

TEST(Shape, Broadcast) {
  Builder b;
  const Value x = b.parameter(f32({3, 1})), s = b.parameter(f32());
  EXPECT_EQ(b.broadcast(x, {2, 3, 4}).dims(), (Dims{2, 3, 4}));
  EXPECT_EQ(b.broadcast(s, {}), s);
  EXPECT_EQ(b.broadcast(x, {3, 1}), x);
  EXPECT_EQ(b.broadcast_in_dim(x, {3, 1}, {0, 1}), x);
  EXPECT_EQ(b.broadcast_in_dim(x, {5, 3}, {1, 0}).dims(), (Dims{5, 3}));
  EXPECT_THAT(rejection([&] {
                (void)b.broadcast(x, {2, 4});
              }),
              HasSubstr("dimension 0 of tensor<3x1xf32> does not fit dimension 0 of tensor<2x4xf32>"));
  EXPECT_THAT(rejection([&] { (void)b.broadcast(x, {3}); }),
              HasSubstr("more dimensions than the wanted [3]"));
  EXPECT_NE(rejection([&] { (void)b.broadcast_in_dim(x, {3, 1}, {0}); }), "");
  EXPECT_THAT(rejection([&] {
                (void)b.broadcast_in_dim(x, {3, 3}, {0, 0});
              }),
              HasSubstr("different dimensions"));
  EXPECT_NE(rejection([&] { (void)b.broadcast_in_dim(x, {3, 3}, {0, 2}); }), "");
  EXPECT_NE(rejection([&] { (void)b.broadcast(s, {-2}); }), "");
}

TEST(Shape, ReshapeAndTranspose) {
  Builder b;
  const Value x = b.parameter(f32({2, 3, 4}));
  EXPECT_EQ(b.reshape(x, {6, 4}).type(), f32({6, 4}));
  EXPECT_EQ(b.reshape(x, {2, 3, 4}), x);
  EXPECT_THAT(rejection([&] {
                (void)b.reshape(x, {5, 5});
              }),
              HasSubstr("tensor<2x3x4xf32> (24) and tensor<5x5xf32> (25)"));
  EXPECT_NE(rejection([&] { (void)b.reshape(x, {-6, -4}); }), "");
  EXPECT_EQ(b.transpose(x, {2, 0, 1}).dims(), (Dims{4, 2, 3}));
  EXPECT_EQ(b.transpose(x, {0, 1, 2}), x);
  EXPECT_THAT(rejection([&] {
                (void)b.transpose(x, {0, 1, 1});
              }),
              HasSubstr("[0, 1, 1] is not a permutation"));
  EXPECT_NE(rejection([&] { (void)b.transpose(x, {1, 0}); }), "");
}

TEST(Shape, Slices) {
  Builder b;
  const Value x = b.parameter(f32({4, 10}));
  EXPECT_EQ(b.slice(x, {1, 0}, {3, 10}, {1, 3}).dims(), (Dims{2, 4}));
  EXPECT_EQ(b.slice(x, {0, 0}, {4, 10}), x);
  EXPECT_EQ(b.slice_dim(x, 1, 2, 9, 2).dims(), (Dims{4, 4}));
  EXPECT_EQ(b.slice_dim(x, 0, 2, 2).dims(), (Dims{0, 10}));
  EXPECT_THAT(rejection([&] {
                (void)b.slice(x, {0, 5}, {4, 11});
              }),
              HasSubstr("in dimension 1 of tensor<4x10xf32> start is 5, limit 11, stride 1"));
  EXPECT_NE(rejection([&] { (void)b.slice(x, {0, 5}, {4, 4}); }), "");
  EXPECT_NE(rejection([&] { (void)b.slice(x, {-1, 0}, {4, 4}); }), "");
  EXPECT_NE(rejection([&] { (void)b.slice(x, {0, 0}, {4, 4}, {1, 0}); }), "");
  EXPECT_THAT(rejection([&] {
                (void)b.slice(x, {0}, {4, 4});
              }),
              HasSubstr("start must have one entry a dimension"));
  EXPECT_NE(rejection([&] { (void)b.slice_dim(x, 2, 0, 1); }), "");
}

TEST(Shape, Pad) {
  Builder b;
  const Value x = b.parameter(f32({2, 3})), zero = b.splat(0, f32()), one = b.splat(1, s32());
  EXPECT_EQ(b.pad(x, zero, {1, 0}, {0, 2}).dims(), (Dims{3, 5}));
  EXPECT_EQ(b.pad(x, zero, {0, -1}, {0, 0}, {0, 2}).dims(), (Dims{2, 6}));
  EXPECT_EQ(b.pad(x, zero, {0, 0}, {0, 0}), x);
  EXPECT_NE(b.pad(x, zero, {0, 1}, {0, -1}), x);
  EXPECT_THAT(rejection([&] { (void)b.pad(x, one, {0, 0}, {0, 0}); }), HasSubstr("found tensor<i32>"));
  EXPECT_THAT(rejection([&] { (void)b.pad(x, zero, {0, -2}, {0, -2}); }), HasSubstr("must not be negative"));
  EXPECT_NE(rejection([&] { (void)b.pad(x, zero, {0, 0}, {0, 0}, {0, -1}); }), "");
  EXPECT_NE(rejection([&] { (void)b.pad(x, zero, {0}, {0, 0}); }), "");
}

TEST(Shape, ConcatenateAndReverse) {
  Builder b;
  const Value x = b.parameter(f32({2, 3})), y = b.parameter(f32({2, 5})), i = b.parameter(s32({2, 3}));
  const Value parts[] = {x, y, x}, mixed[] = {x, i};
  EXPECT_EQ(b.concatenate(parts, 1).dims(), (Dims{2, 11}));
  EXPECT_EQ(b.concatenate({&x, 1}, 0), x);
  EXPECT_THAT(rejection([&] { (void)b.concatenate(parts, 0); }),
              HasSubstr("agree in all but dimension 0, found tensor<2x3xf32> and tensor<2x5xf32>"));
  EXPECT_NE(rejection([&] { (void)b.concatenate(mixed, 0); }), "");
  EXPECT_NE(rejection([&] { (void)b.concatenate({}, 0); }), "");
  EXPECT_NE(rejection([&] { (void)b.concatenate(parts, 2); }), "");
  EXPECT_EQ(b.reverse(x, {1}).type(), x.type());
  EXPECT_EQ(b.reverse(x, {}), x);
  EXPECT_NE(rejection([&] { (void)b.reverse(x, {0, 0}); }), "");
  EXPECT_NE(rejection([&] { (void)b.reverse(x, {2}); }), "");
}

TEST(Index, DynamicSlices) {
  Builder b;
  const Value x = b.parameter(f32({4, 5})), update = b.parameter(f32({2, 2})), i = b.parameter(s32()),
              j = b.parameter(s64());
  const Value starts[] = {i, i}, mixed[] = {i, j};
  EXPECT_EQ(b.dynamic_slice(x, starts, {2, 5}).dims(), (Dims{2, 5}));
  EXPECT_EQ(b.dynamic_slice(x, starts, {4, 5}), x);
  EXPECT_EQ(b.dynamic_update_slice(x, update, starts).type(), x.type());
  EXPECT_EQ(b.dynamic_update_slice(x, x, starts), x);
  EXPECT_THAT(rejection([&] {
                (void)b.dynamic_slice(x, mixed, {2, 2});
              }),
              HasSubstr("integer scalars of one type"));
  EXPECT_THAT(rejection([&] {
                (void)b.dynamic_slice(x, {&i, 1}, {2, 2});
              }),
              HasSubstr("one start a dimension"));
  EXPECT_THAT(rejection([&] {
                (void)b.dynamic_slice(x, starts, {5, 2});
              }),
              HasSubstr("size 5 of dimension 0"));
  EXPECT_NE(rejection([&] { (void)b.dynamic_slice(x, starts, {5}); }), "");
  EXPECT_NE(rejection([&] { (void)b.dynamic_update_slice(update, x, starts); }), "");
}

GatherDims row_gather() {
  GatherDims dims;
  dims.offset_dims = {1};
  dims.collapsed_slice_dims = {0};
  dims.start_index_map = {0};
  dims.index_vector_dim = 1;
  dims.slice_sizes = {1, 5};
  return dims;
}

TEST(Index, Gather) {
  Builder b;
  const Value x = b.parameter(f32({4, 5})), i = b.parameter(s64({7, 1})), f = b.parameter(f32({7, 1}));
  EXPECT_EQ(b.gather(x, i, row_gather()).type(), f32({7, 5}));
  GatherDims front = row_gather();
  front.offset_dims = {0};
  EXPECT_EQ(b.gather(x, i, front).type(), f32({5, 7}));
  const auto broken = [&](auto change) {
    GatherDims dims = row_gather();
    change(dims);
    return rejection([&] { (void)b.gather(x, i, dims); });
  };
  EXPECT_THAT(rejection([&] { (void)b.gather(x, f, row_gather()); }), HasSubstr("indices must be integers"));
  EXPECT_THAT(broken([](GatherDims& d) { d.index_vector_dim = 3; }), HasSubstr("index_vector_dim"));
  EXPECT_THAT(broken([](GatherDims& d) {
                d.start_index_map = {0, 1};
              }),
              HasSubstr("start_index_map must have one"));
  EXPECT_THAT(broken([](GatherDims& d) { d.start_index_map = {2}; }), HasSubstr("below 2"));
  EXPECT_THAT(broken([](GatherDims& d) {
                d.slice_sizes = {1, 6};
              }),
              HasSubstr("slice size 6 of dimension 1"));
  EXPECT_THAT(broken([](GatherDims& d) { d.slice_sizes = {2, 5}; }), HasSubstr("the dimension is collapsed"));
  EXPECT_NE(broken([](GatherDims& d) { d.slice_sizes = {1}; }), "");
  EXPECT_NE(broken([](GatherDims& d) { d.collapsed_slice_dims = {}; }), "");
  EXPECT_NE(broken([](GatherDims& d) { d.offset_dims = {2}; }), "");
}

TEST(Index, Scatter) {
  Builder b;
  const Value x = b.parameter(f32({4, 5})), i = b.parameter(s64({7, 1})), u = b.parameter(f32({7, 5})),
              w = b.parameter(s32({7, 5})), wide = b.parameter(f32({7, 6})), tall = b.parameter(f32({6, 5}));
  ScatterDims rows;
  rows.update_window_dims = {1};
  rows.inserted_window_dims = {0};
  rows.scatter_dims_to_operand_dims = {0};
  rows.index_vector_dim = 1;
  EXPECT_EQ(b.scatter(x, i, u, rows, sum_body).type(), x.type());
  EXPECT_THAT(rejection([&] { (void)b.scatter(x, i, w, rows, sum_body); }),
              HasSubstr("operand's element type"));
  EXPECT_THAT(rejection([&] { (void)b.scatter(x, i, wide, rows, sum_body); }), HasSubstr("is larger than"));
  EXPECT_THAT(rejection([&] { (void)b.scatter(x, i, tall, rows, sum_body); }),
              HasSubstr("batch dimensions [7]"));
  EXPECT_THAT(rejection([&] {
                (void)b.scatter(x, i, u, rows, [](Builder& b, std::span<const Value> in) {
                  return Values{b.compare(in[0], in[1], Compare::kLt)};
                });
              }),
              HasSubstr("its body must return (tensor<f32>), it returns (tensor<i1>)"));
  ScatterDims none = rows;
  none.inserted_window_dims = {};
  EXPECT_NE(rejection([&] { (void)b.scatter(x, i, u, none, sum_body); }), "");
}

}  // namespace
}  // namespace sluice::stablehlo::testing
