#include "sluice/stablehlo/builder.h"

#include <optional>

#include "sluice/stablehlo/test_support.h"

namespace sluice::stablehlo::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Builder, WholeProgram) {
  Builder b;
  const Value x = b.parameter(f32({2})), y = b.parameter(f32({2}));
  const Value results[] = {b.add(x, y)};
  EXPECT_EQ(b.operations(), 1u);
  EXPECT_EQ(b.finish(results, {}, 4, "step"),
            "module @step attributes {mhlo.num_replicas = 4 : i32, mhlo.num_partitions = 1 : i32} {\n"
            "  func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> (tensor<2xf32>) {\n"
            "    %0 = \"stablehlo.add\"(%arg0, %arg1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
            "    \"func.return\"(%0) : (tensor<2xf32>) -> ()\n"
            "  }\n"
            "}\n");
}

TEST(Builder, NothingInNothingOut) {
  Builder b;
  const std::string text = b.finish({}, {});
  EXPECT_THAT(text, HasSubstr("@main() -> () {\n    \"func.return\"() : () -> ()\n"));
}

TEST(Builder, DonationsAreAttributesOfTheArguments) {
  Builder b;
  const Value x = b.parameter(f32()), y = b.parameter(s32()), z = b.parameter(f32());
  const Value results[] = {b.negate(y), x};
  const Donation donations[] = {{}, {Donation::Kind::kAliasOutput, 0}, {Donation::Kind::kDonor, 0}};
  EXPECT_THAT(b.finish(results, donations),
              HasSubstr("(%arg0: tensor<f32>, %arg1: tensor<i32> {tf.aliasing_output = 0 : i32}, "
                        "%arg2: tensor<f32> {jax.buffer_donor = true})"));
  EXPECT_TRUE(static_cast<bool>(z));
}

TEST(Builder, DonationsThatCannotBe) {
  const auto attempt = [](const std::vector<Donation>& donations) {
    Builder b;
    const Value x = b.parameter(f32({2})), y = b.parameter(f32({2}));
    const Value results[] = {b.add(x, y), b.reduce_sum(x, {0})};
    return rejection([&] { (void)b.finish(results, donations); });
  };
  const Donation first{Donation::Kind::kAliasOutput, 0};
  EXPECT_THAT(attempt({first}), HasSubstr("one entry a parameter (2), found 1"));
  EXPECT_THAT(attempt({first, first}), HasSubstr("two parameters are donated to output 0"));
  EXPECT_THAT(attempt({first, {Donation::Kind::kAliasOutput, 2}}),
              HasSubstr("parameter 1 is donated to output 2, but there are 2"));
  EXPECT_THAT(attempt({first, {Donation::Kind::kAliasOutput, 1}}), HasSubstr("which has another size"));
  EXPECT_EQ(attempt({first, {}}), "");
}

TEST(Builder, FinishRefuses) {
  Builder b, other;
  const Value x = b.parameter(f32()), foreign = other.parameter(f32());
  EXPECT_THAT(rejection([&] { (void)b.finish({&foreign, 1}, {}); }), HasSubstr("another builder"));
  EXPECT_THAT(rejection([&] { (void)b.finish({&x, 1}, {}, 0); }), HasSubstr("at least one replica, found 0"));
  EXPECT_THAT(rejection([&] { (void)b.finish({&x, 1}, {}, 1, "a b"); }), HasSubstr("found \"a b\""));
  (void)b.finish({&x, 1}, {});
  EXPECT_THROW((void)b.finish({&x, 1}, {}), Error);
  EXPECT_THROW((void)b.negate(x), Error);
  EXPECT_THROW((void)b.parameter(f32()), Error);
}

TEST(Builder, OperandsMustBeThisBuildersOwn) {
  Builder b, other;
  const Value x = b.parameter(f32()), foreign = other.parameter(f32());
  EXPECT_EQ(rejection([&] { (void)b.add(x, foreign); }),
            "stablehlo.add: an operand belongs to another builder");
  EXPECT_THAT(rejection([&] { (void)b.exp(Value()); }),
              HasSubstr("stablehlo.exponential: an operand is empty"));
  EXPECT_THAT(rejection([&] { (void)b.parameter(f32({2, -1})); }), HasSubstr("must not be negative"));
}

TEST(Builder, LocationsFollowTheOperations) {
  Builder b;
  const Value x = b.parameter(f32({3}));
  b.set_location("conv1/aten::relu");
  const Value y = b.exp(x);
  b.set_location("say \"hi\"\\\n");
  const Value z = b.reduce_sum(y, {0});
  b.set_location("");
  const Value w = b.log(z);
  const std::string text = b.finish({&w, 1}, {});
  EXPECT_THAT(text, HasSubstr("-> tensor<3xf32> loc(\"conv1/aten::relu\")\n"));
  EXPECT_THAT(text, HasSubstr("-> tensor<f32> loc(\"say \\22hi\\22\\5C\\0A\")\n"));
  EXPECT_THAT(
      text,
      HasSubstr("      %2 = \"stablehlo.add\"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"));
  EXPECT_THAT(text, HasSubstr("stablehlo.log\"(%3) : (tensor<f32>) -> tensor<f32>\n"));
}

TEST(Builder, EqualSplatsOfABlockAreOneValue) {
  Builder b;
  const Value x = b.parameter(f32({2}));
  const Value one = b.splat(1, f32());
  EXPECT_EQ(one, b.splat(1.0, f32()));
  EXPECT_NE(one, b.splat(1, s32()));
  EXPECT_NE(b.splat(0.0, f32()), b.splat(-0.0, f32()));
  Value inside;
  (void)b.reduce({&x, 1}, {&one, 1}, {0}, [&](Builder& b, std::span<const Value> in) {
    inside = b.splat(1, f32());
    return Values{b.add(b.multiply(in[0], inside), in[1])};
  });
  EXPECT_NE(one, inside);
  EXPECT_EQ(one, b.splat(1, f32()));
}

TEST(Builder, ABodySeesOnlyWhatItMay) {
  Builder b;
  const Value x = b.parameter(f32({2})), zero = b.splat(0, f32());
  const std::string message = rejection([&] {
    (void)b.reduce({&x, 1}, {&zero, 1}, {0},
                   [&](Builder& b, std::span<const Value> in) { return Values{b.add(in[0], zero)}; });
  });
  EXPECT_EQ(
      message,
      "stablehlo.add: %0 is not visible in this body of stablehlo.reduce, which sees only its own arguments "
      "and what is made in it");
  // The body is gone and the builder goes on.
  std::optional<Value> leaked;
  const Value total = b.reduce({&x, 1}, {&zero, 1}, {0}, [&](Builder& b, std::span<const Value> in) {
    leaked = b.add(in[0], in[1]);
    return Values{*leaked};
  })[0];
  EXPECT_THAT(rejection([&] { (void)b.negate(*leaked); }), HasSubstr("not visible"));
  EXPECT_THROW((void)b.reduce({&x, 1}, {&zero, 1}, {0},
                              [&](Builder& b, std::span<const Value>) { return Values{b.parameter(f32())}; }),
               Error);
  const std::string text = b.finish({&total, 1}, {});
  EXPECT_THAT(
      text, HasSubstr("    %2 = \"stablehlo.reduce\"(%arg0, %0) ({\n"
                      "    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):\n"
                      "      %1 = \"stablehlo.add\"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
                      "      \"stablehlo.return\"(%1) : (tensor<f32>) -> ()\n"
                      "    }) {dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<f32>) -> tensor<f32>\n"));
}

TEST(Builder, ARejectedCallLeavesNoTrace) {
  Builder b;
  const Value x = b.parameter(f32({2})), y = b.parameter(f32({3}));
  EXPECT_NE(rejection([&] { (void)b.add(x, y); }), "");
  EXPECT_EQ(b.operations(), 0u);
  EXPECT_THAT(b.finish({&x, 1}, {}), Not(HasSubstr("stablehlo")));
}

TEST(Builder, TypesKeepTheirAddress) {
  Builder b;
  const Value x = b.parameter(f32({2}));
  const Type& type = x.type();
  for (int i = 1; i < 2000; ++i) (void)b.parameter(f32({i}));
  EXPECT_EQ(&type, &x.type());
  EXPECT_EQ(type, f32({2}));
}

}  // namespace
}  // namespace sluice::stablehlo::testing
