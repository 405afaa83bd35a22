#include "sluice/stablehlo/builder/elementwise.h"

#include "sluice/stablehlo/test_support.h"

namespace sluice::stablehlo::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Unary = Value (Builder::*)(Value);
using Binary = Value (Builder::*)(Value, Value);

TEST(Elementwise, UnaryTypesAndRefusals) {
  Builder b;
  const Value f = b.parameter(f32({2, 3})), i = b.parameter(s32({2})), u = b.parameter(u32({2})),
              p = b.parameter(pred({2}));
  for (Unary op : {&Builder::cbrt, &Builder::ceil, &Builder::cosine, &Builder::exp, &Builder::expm1,
                   &Builder::floor, &Builder::log, &Builder::log1p, &Builder::logistic, &Builder::round_even,
                   &Builder::round_afz, &Builder::rsqrt, &Builder::sine, &Builder::sqrt, &Builder::tanh}) {
    EXPECT_EQ((b.*op)(f).type(), f.type());
    EXPECT_THAT(rejection([&] { (void)(b.*op)(i); }),
                AllOf(HasSubstr("operands must be floats"), HasSubstr("found tensor<2xi32>")));
    EXPECT_THAT(rejection([&] { (void)(b.*op)(p); }), HasSubstr("found tensor<2xi1>"));
  }
  for (Unary op : {&Builder::abs, &Builder::sign, &Builder::negate}) {
    EXPECT_EQ((b.*op)(f).type(), f.type());
    EXPECT_EQ((b.*op)(i).type(), i.type());
    EXPECT_EQ((b.*op)(u).type(), u.type());
    EXPECT_NE(rejection([&] { (void)(b.*op)(p); }), "");
  }
  EXPECT_EQ(b.abs(u), u);
  EXPECT_EQ(b.is_finite(f).type(), pred({2, 3}));
  EXPECT_NE(rejection([&] { (void)b.is_finite(i); }), "");
  EXPECT_EQ(b.not_(p).type(), p.type());
  EXPECT_EQ(b.not_(u).type(), u.type());
  EXPECT_THAT(rejection([&] { (void)b.not_(f); }),
              HasSubstr("predicates or integers, found tensor<2x3xf32>"));
  EXPECT_EQ(b.popcount(i).type(), i.type());
  EXPECT_NE(rejection([&] { (void)b.popcount(p); }), "");
}

TEST(Elementwise, BinaryTypesAndRefusals) {
  Builder b;
  const Value f = b.parameter(f32({2})), g = b.parameter(f32({3})), d = b.parameter({DType::kF64, {2}}),
              i = b.parameter(s32({2})), p = b.parameter(pred({2}));
  for (Binary op :
       {&Builder::add, &Builder::subtract, &Builder::multiply, &Builder::divide, &Builder::remainder,
        &Builder::power, &Builder::maximum, &Builder::minimum, &Builder::atan2}) {
    EXPECT_EQ((b.*op)(f, f).type(), f.type());
    EXPECT_THAT(rejection([&] { (void)(b.*op)(f, g); }),
                HasSubstr("operands must have one type, found tensor<2xf32> and tensor<3xf32>"));
    EXPECT_NE(rejection([&] { (void)(b.*op)(f, d); }), "");
  }
  for (Binary op : {&Builder::and_, &Builder::or_, &Builder::xor_, &Builder::shift_left,
                    &Builder::shift_right_arithmetic, &Builder::shift_right_logical}) {
    EXPECT_EQ((b.*op)(i, i).type(), i.type());
    EXPECT_NE(rejection([&] { (void)(b.*op)(f, f); }), "");
  }
  for (Binary op : {&Builder::add, &Builder::multiply, &Builder::maximum, &Builder::minimum, &Builder::and_,
                    &Builder::or_, &Builder::xor_}) {
    EXPECT_EQ((b.*op)(p, p).type(), p.type());
  }
  for (Binary op : {&Builder::subtract, &Builder::divide, &Builder::remainder, &Builder::power,
                    &Builder::atan2, &Builder::shift_left}) {
    EXPECT_NE(rejection([&] { (void)(b.*op)(p, p); }), "");
  }
  EXPECT_EQ(rejection([&] { (void)b.add(f, g); }),
            "stablehlo.add: operands must have one type, found tensor<2xf32> and tensor<3xf32>");
}

TEST(Elementwise, Chlo) {
  Builder b;
  const Value f = b.parameter(f32({2})), i = b.parameter(s32({2}));
  for (const char* name : {"erf", "erf_inv", "erfc", "lgamma", "digamma", "acos", "asin", "atan", "acosh",
                           "asinh", "atanh", "cosh", "sinh", "tan"}) {
    EXPECT_EQ(b.chlo(name, f).type(), f.type());
  }
  EXPECT_EQ(b.chlo("zeta", f, f).type(), f.type());
  EXPECT_THAT(rejection([&] { (void)b.chlo("erv", f); }),
              HasSubstr("chlo.erv: no such operation of one operand"));
  EXPECT_THAT(rejection([&] { (void)b.chlo("erf", f, f); }),
              HasSubstr("of two operands; known are: next_after"));
  EXPECT_THAT(rejection([&] { (void)b.chlo("erf", i); }), HasSubstr("chlo.erf: operands must be floats"));
}

TEST(Elementwise, Conversions) {
  Builder b;
  const Value f = b.parameter(f32({2})), p = b.parameter(pred({2}));
  EXPECT_EQ(b.convert(f, DType::kF32), f);
  EXPECT_EQ(b.convert(f, DType::kBF16).type(), (Type{DType::kBF16, {2}}));
  EXPECT_EQ(b.bitcast_convert(f, DType::kU32).type(), u32({2}));
  EXPECT_EQ(b.bitcast_convert(p, DType::kPred), p);
  EXPECT_EQ(b.bitcast_convert(f, DType::kF64).type(), (Type{DType::kF64, {}}));
  EXPECT_EQ(b.bitcast_convert(f, DType::kU8).type(), (Type{DType::kU8, {2, 4}}));
  EXPECT_THAT(rejection([&] { (void)b.bitcast_convert(b.parameter(f32({3})), DType::kF64); }),
              HasSubstr("an element of f64 is made of 2 of f32"));
  EXPECT_NE(rejection([&] { (void)b.bitcast_convert(p, DType::kS8); }), "");
}

TEST(Elementwise, CompareSelectClamp) {
  Builder b;
  const Value f = b.parameter(f32({2})), g = b.parameter(f32({3})), p = b.parameter(pred({2})),
              q = b.parameter(pred()), s = b.parameter(f32()), i = b.parameter(s32());
  EXPECT_EQ(b.compare(f, f, Compare::kLe).type(), pred({2}));
  EXPECT_NE(rejection([&] { (void)b.compare(f, g, Compare::kLe); }), "");
  EXPECT_EQ(b.select(p, f, f).type(), f.type());
  EXPECT_EQ(b.select(q, g, g).type(), g.type());
  EXPECT_THAT(rejection([&] { (void)b.select(p, g, g); }), HasSubstr("found tensor<2xi1> for tensor<3xf32>"));
  EXPECT_NE(rejection([&] { (void)b.select(f, f, f); }), "");
  EXPECT_NE(rejection([&] { (void)b.select(p, f, g); }), "");
  EXPECT_EQ(b.clamp(s, f, f).type(), f.type());
  EXPECT_THAT(rejection([&] { (void)b.clamp(s, f, i); }), HasSubstr("found tensor<i32> for tensor<2xf32>"));
  EXPECT_NE(rejection([&] { (void)b.clamp(g, f, s); }), "");
}

TEST(Elementwise, MaximumIsSpelledOutOnlyWhereANaNCouldBeLost) {
  const auto operations = [](bool explicit_nan, const Type& type, bool constant) {
    Builder b;
    b.set_explicit_nan(explicit_nan);
    const Value x = b.parameter(type), y = constant ? b.splat(1, type) : b.parameter(type);
    const size_t before = b.operations();
    (void)b.maximum(x, y);
    (void)b.maximum(y, x);
    return b.operations() - before;
  };
  EXPECT_EQ(operations(true, f32({2}), false), 8u);
  EXPECT_EQ(operations(true, f32({2}), true), 2u);
  EXPECT_EQ(operations(true, s32({2}), false), 2u);
  EXPECT_EQ(operations(false, f32({2}), false), 2u);

  Builder b;  // two bounds in a row would become a clamp
  const Value x = b.parameter(f32({2}));
  const Value bounded = b.maximum(x, b.splat(-1, x.type()));
  const size_t before = b.operations();
  (void)b.minimum(bounded, b.splat(1, x.type()));
  EXPECT_EQ(b.operations() - before, 5u);
}

TEST(Elementwise, IsKnownByName) {
  const auto named = [](const char* name) {
    Operation op;
    op.name = name;
    return is_elementwise(op);
  };
  for (const char* name : {"stablehlo.abs", "stablehlo.select", "stablehlo.tanh", "stablehlo.xor"})
    EXPECT_TRUE(named(name)) << name;
  for (const char* name : {"add", "chlo.erf", "stablehlo.", "stablehlo.reduce", "stablehlo.reverse"})
    EXPECT_FALSE(named(name)) << name;
}

TEST(Constants, Refusals) {
  Builder b;
  EXPECT_NE(rejection([&] { (void)b.splat(300.0, {DType::kU8, {}}); }), "");
  EXPECT_NE(rejection([&] { (void)b.splat(1, f32({-1})); }), "");
  EXPECT_THAT(rejection([&] { (void)b.constant(f32({2}), nullptr); }), HasSubstr("null pointer"));
  EXPECT_THAT(rejection([&] { (void)b.iota(f32({2}), 1); }), HasSubstr("no dimension 1 in tensor<2xf32>"));
  EXPECT_NE(rejection([&] { (void)b.iota(pred({2}), 0); }), "");
  EXPECT_EQ(b.constant_i64({1, 2, 3}).type(), s64({3}));
}

}  // namespace
}  // namespace sluice::stablehlo::testing
