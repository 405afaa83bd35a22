// Patterns that change which operations move elements. tests/device compares their values with LibTorch's.
#include <gmock/gmock.h>

#include <functional>

#include "sluice/patterns/testing/library.h"
#include "sluice/patterns/testing/rows.h"

namespace sluice::patterns {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Makes an index of these dims, which a test broadcasts, from a parameter of the builder.
using MakeIndex = std::function<Value(Builder&)>;

Arg as_argument(Value value) {
  Arg arg;
  arg.kind = Arg::Kind::kTensor;
  arg.value = value;
  return arg;
}

// The program of x.gather(dim, index) for x of f32 of these dims.
std::string gather_text(const Dims& x, int64_t dim, const MakeIndex& index) {
  TestCall call("aten::gather");
  call.tensor("self", {kF32, x}).integer("dim", dim);
  return text_of(call.add("index", as_argument(index(call.builder))), TestLibrary(false));
}

// The program of x.scatter_add(dim, index, source), where the source has the dims of the index.
std::string scatter_text(const Dims& x, int64_t dim, const MakeIndex& index) {
  TestCall call("aten::scatter_add");
  call.tensor("self", {kF32, x}).integer("dim", dim);
  const Value made = index(call.builder);
  call.add("index", as_argument(made)).tensor("src", {kF32, made.dims()});
  return text_of(call, TestLibrary(false));
}

// A parameter of dims `from`, broadcast to `dims`.
MakeIndex broadcast(const Dims& from, const Dims& dims, const Dims& to) {
  return [=](Builder& b) { return b.broadcast_in_dim(b.parameter({kS64, from}), dims, to); };
}

TEST(BroadcastIndex, ReadsWholeRows) {
  const std::string text = gather_text({4, 9, 32}, 1, broadcast({4, 7}, {4, 7, 32}, {0, 1}));
  EXPECT_THAT(text, HasSubstr("offset_dims = [2], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], "
                              "index_vector_dim = 2"));
  EXPECT_THAT(text, HasSubstr("slice_sizes = array<i64: 1, 1, 32>"));
  EXPECT_THAT(text, HasSubstr("(tensor<4x9x32xf32>, tensor<4x7x2xi32>) -> tensor<4x7x32xf32>"));
}

TEST(BroadcastIndex, AddsWholeRows) {
  const std::string text = scatter_text({4, 9, 32}, 1, broadcast({4, 7}, {4, 7, 32}, {0, 1}));
  EXPECT_THAT(text, HasSubstr("update_window_dims = [2], inserted_window_dims = [0, 1], "
                              "scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2"));
  EXPECT_THAT(text, HasSubstr("(tensor<4x9x32xf32>, tensor<4x7x2xi32>, tensor<4x7x32xf32>)"));
  EXPECT_THAT(text, HasSubstr("stablehlo.add"));
}

TEST(BroadcastIndex, ReadsSlicesAlongAllDimensionsButOne) {
  const std::string text = gather_text({4, 9, 32}, 1, broadcast({7}, {4, 7, 32}, {1}));
  EXPECT_THAT(text, HasSubstr("offset_dims = [0, 2]"));
  EXPECT_THAT(text, HasSubstr("slice_sizes = array<i64: 4, 1, 32>"));
  EXPECT_THAT(text, HasSubstr("tensor<7x1xi32>) -> tensor<4x7x32xf32>"));
}

TEST(BroadcastIndex, ReadsTheFirstElementsWhereTheIndexIsShorter) {
  EXPECT_THAT(gather_text({4, 9, 32}, 1, broadcast({2, 7}, {2, 7, 5}, {0, 1})),
              HasSubstr("slice_sizes = array<i64: 1, 1, 5>"));
}

TEST(BroadcastIndex, IsSeenThroughOperationsThatMoveElements) {
  const std::string_view rows = "slice_sizes = array<i64: 1, 1, 6>";
  const std::vector<MakeIndex> indices = {
      // index.repeat({1, 1, 6})
      [](Builder& b) {
        const Value apart = b.broadcast_in_dim(b.parameter({kS64, {4, 7, 1}}), {1, 4, 1, 7, 6, 1}, {1, 3, 5});
        return b.reshape(apart, {4, 7, 6});
      },
      // Two dimensions that were broadcast are one.
      [](Builder& b) {
        return b.reshape(b.broadcast_in_dim(b.parameter({kS64, {4, 7}}), {4, 7, 2, 3}, {0, 1}), {4, 7, 6});
      },
      [](Builder& b) {
        return b.transpose(b.broadcast_in_dim(b.parameter({kS64, {4, 7}}), {6, 4, 7}, {1, 2}), {1, 2, 0});
      },
      [](Builder& b) {
        const Value wide = b.broadcast_in_dim(b.parameter({kS32, {4, 7}}), {4, 7, 9}, {0, 1});
        return b.slice_dim(b.optimization_barrier(b.convert(wide, kS64)), 2, 1, 7);
      },
      // As the device reads a part of a storage.
      [](Builder& b) {
        const Value all = b.broadcast_in_dim(b.parameter({kS64, {9, 7}}), {9, 7, 6}, {0, 1});
        return b.slice_dim(b.reshape(b.reshape(all, {9 * 7 * 6}), {9, 7, 6}), 0, 2, 6);
      },
      [](Builder& b) {
        return b.broadcast_in_dim(b.parameter({kS64, {4, 7, 1}}), {4, 7, 6}, {0, 1, 2});
      }};
  for (size_t i = 0; i < indices.size(); ++i)
    EXPECT_THAT(gather_text({4, 9, 6}, 1, indices[i]), HasSubstr(std::string(rows))) << "index " << i;
}

TEST(BroadcastIndex, LeavesOtherIndicesAlone) {
  const std::vector<MakeIndex> indices = {
      [](Builder& b) {
        return b.parameter({kS64, {4, 7, 6}});
      },
      // Equal only along the dimension whose places they are.
      broadcast({4, 6}, {4, 7, 6}, {0, 2}),
      // The last dimension has 2 parts of 3 equal elements, or 3 parts of the same 2 elements.
      [](Builder& b) {
        return b.reshape(b.broadcast_in_dim(b.parameter({kS64, {4, 7, 2}}), {4, 7, 2, 3}, {0, 1, 2}),
                         {4, 7, 6});
      },
      [](Builder& b) {
        return b.reshape(b.broadcast_in_dim(b.parameter({kS64, {4, 7, 2}}), {4, 7, 3, 2}, {0, 1, 3}),
                         {4, 7, 6});
      },
      // A dimension is cut where the broadcast one is not.
      [](Builder& b) {
        return b.reshape(b.broadcast_in_dim(b.parameter({kS64, {4, 3}}), {4, 3, 14}, {0, 1}), {4, 7, 6});
      }};
  for (size_t i = 0; i < indices.size(); ++i) {
    EXPECT_THAT(gather_text({4, 9, 6}, 1, indices[i]), HasSubstr("slice_sizes = array<i64: 1, 1, 1>"))
        << "index " << i;
    EXPECT_THAT(scatter_text({4, 9, 6}, 1, indices[i]), Not(HasSubstr("update_window_dims")))
        << "index " << i;
  }
}

}  // namespace
}  // namespace sluice::patterns
