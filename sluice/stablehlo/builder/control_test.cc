#include "sluice/stablehlo/test_support.h"

namespace sluice::stablehlo::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Values nothing(Builder&, std::span<const Value>) { return {}; }

TEST(Control, While) {
  Builder b;
  const Value init[] = {b.parameter(s32()), b.parameter(f32({2}))};
  const Value limit = b.splat(3, s32());
  const Region below = [&](Builder& b, std::span<const Value> in) {
    return Values{b.compare(in[0], limit, Compare::kLt)};
  };
  const Region step = [](Builder& b, std::span<const Value> in) {
    return Values{b.add(in[0], b.splat(1, s32())), b.negate(in[1])};
  };
  const Values out = b.while_(init, below, step);
  EXPECT_EQ(out[0].type(), s32());
  EXPECT_EQ(out[1].type(), f32({2}));
  EXPECT_THAT(rejection([&] { (void)b.while_(init, step, step); }),
              HasSubstr("its condition must return (tensor<i1>)"));
  EXPECT_THAT(rejection([&] { (void)b.while_(init, below, below); }),
              HasSubstr("its body must return (tensor<i32>, tensor<2xf32>), it returns (tensor<i1>)"));
}

TEST(Control, IfAndCase) {
  Builder b;
  const Value p = b.parameter(pred()), i = b.parameter(s32()), x = b.parameter(f32({2})),
              wide = b.parameter(pred({2}));
  const Region same = [&](Builder&, std::span<const Value>) { return Values{x}; };
  EXPECT_EQ(b.if_(p, same, same)[0].type(), x.type());
  EXPECT_TRUE(b.if_(p, nothing, nothing).empty());
  EXPECT_THAT(rejection([&] { (void)b.if_(wide, same, same); }),
              HasSubstr("must be tensor<i1>, found tensor<2xi1>"));
  EXPECT_THAT(rejection([&] { (void)b.if_(p, same, nothing); }),
              HasSubstr("the false branch, as the true one, must return (tensor<2xf32>), it returns ()"));
  const Region branches[] = {same, same, same}, uneven[] = {same, nothing};
  EXPECT_EQ(b.case_(i, branches)[0].type(), x.type());
  EXPECT_NE(rejection([&] { (void)b.case_(i, uneven); }), "");
  EXPECT_NE(rejection([&] { (void)b.case_(i, {}); }), "");
  EXPECT_NE(rejection([&] { (void)b.case_(p, branches); }), "");
  const std::string text = b.finish({}, {});
  EXPECT_THAT(text, HasSubstr("({\n      \"stablehlo.return\"() : () -> ()\n    }, {\n"));
}

TEST(Control, RandomBits) {
  Builder b;
  const Value state = b.parameter(u64({2})), short_state = b.parameter(u64({1}));
  const auto [next, bits] = b.rng_bits(state, u32({3, 4}));
  EXPECT_EQ(next.type(), u64({2}));
  EXPECT_EQ(bits.type(), u32({3, 4}));
  EXPECT_THAT(rejection([&] { (void)b.rng_bits(short_state, u32({3})); }),
              HasSubstr("must be tensor<2xui64>"));
  EXPECT_NE(rejection([&] { (void)b.rng_bits(state, f32({3})); }), "");
  EXPECT_EQ(b.optimization_barrier(bits).type(), bits.type());
  const Value both[] = {bits, state};
  const Values held = b.optimization_barrier(both);
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].type(), bits.type());
  EXPECT_EQ(held[1].type(), state.type());
  EXPECT_THAT(rejection([&] { (void)b.optimization_barrier(std::span<const Value>()); }),
              HasSubstr("there must be a value"));
}

TEST(Collectives, ShapesAndText) {
  Builder b;
  const Value x = b.parameter(f32({4, 6}));
  const ReplicaGroups pairs = {{0, 1}, {2, 3}};
  EXPECT_EQ(b.replica_id().type(), u32());
  EXPECT_EQ(b.all_reduce_sum(x, pairs).type(), x.type());
  EXPECT_EQ(b.all_reduce_sum(x).type(), x.type());
  EXPECT_EQ(b.all_reduce(x, {{0, 1, 2}, {3}}, sum_body).type(), x.type());
  EXPECT_EQ(b.all_gather(x, 1, pairs).type(), f32({4, 12}));
  EXPECT_EQ(b.reduce_scatter(x, 1, pairs, sum_body).type(), f32({4, 3}));
  EXPECT_EQ(b.all_to_all(x, 0, 1, pairs).type(), f32({2, 12}));
  EXPECT_EQ(b.all_to_all(x, 1, 1, pairs).type(), x.type());
  EXPECT_EQ(b.collective_permute(x, {{0, 1}, {1, 0}}).type(), x.type());
  const std::string text = b.finish({}, {}, 4);
  EXPECT_THAT(
      text,
      HasSubstr("replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, all_gather_dim = 1 : i64"));
  EXPECT_THAT(text, HasSubstr("replica_groups = dense<[[0, 1, 2], [3, -1, -1]]> : tensor<2x3xi64>"));
  EXPECT_THAT(text, HasSubstr("replica_groups = dense<> : tensor<0x0xi64>"));
  EXPECT_THAT(text, HasSubstr("source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"));
  EXPECT_THAT(text, Not(HasSubstr("channel")));
}

// Plugins recognise the body of a collective by its one operation.
TEST(Collectives, MaximumIsOneOperation) {
  Builder b;
  const Value x = b.parameter(f32({4}));
  const Region greatest = [](Builder& b, std::span<const Value> in) {
    return Values{b.maximum(in[0], in[1])};
  };
  (void)b.all_reduce(x, {}, greatest);
  EXPECT_EQ(b.operations(), 2u);
  (void)b.reduce_scatter(x, 0, {{0, 1}}, greatest);
  EXPECT_EQ(b.operations(), 4u);
}

TEST(Collectives, Refusals) {
  Builder b;
  const Value x = b.parameter(f32({4, 6})), p = b.parameter(pred({2}));
  EXPECT_THAT(rejection([&] { (void)b.all_reduce_sum(x, {{0, 1}, {1}}); }), HasSubstr("found 1 twice"));
  EXPECT_NE(rejection([&] { (void)b.all_reduce_sum(x, {{0, -1}}); }), "");
  EXPECT_NE(rejection([&] { (void)b.all_reduce_sum(x, {{}}); }), "");
  EXPECT_NE(rejection([&] { (void)b.all_reduce_sum(p); }), "");
  EXPECT_THAT(rejection([&] { (void)b.all_gather(x, 0, {}); }), HasSubstr("there must be a group"));
  EXPECT_THAT(rejection([&] {
                (void)b.all_gather(x, 0, {{0, 1}, {2}});
              }),
              HasSubstr("one size, found 2 and 1"));
  EXPECT_NE(rejection([&] { (void)b.all_gather(x, 2, {{0, 1}}); }), "");
  EXPECT_THAT(rejection([&] {
                (void)b.reduce_scatter(x, 0, {{0, 1, 2}}, sum_body);
              }),
              HasSubstr("dimension 0 of tensor<4x6xf32> must be a multiple of the group's size 3"));
  EXPECT_NE(rejection([&] { (void)b.all_to_all(x, 0, 1, {{0, 1, 2}}); }), "");
  EXPECT_THAT(rejection([&] { (void)b.collective_permute(x, {{0, 1}, {0, 2}}); }), HasSubstr("at most once"));
}

}  // namespace
}  // namespace sluice::stablehlo::testing
