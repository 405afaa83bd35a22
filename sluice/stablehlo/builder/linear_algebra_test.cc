#include "sluice/stablehlo/test_support.h"

namespace sluice::stablehlo::testing {
namespace {

using ::testing::HasSubstr;

const Type kC64{DType::kC64, {2}};

TEST(LinearAlgebra, Factorizations) {
  Builder b;
  const Value a = b.parameter(f32({3, 4, 4})), wide = b.parameter(f32({4, 5})), n = b.parameter(s32({4, 4}));
  EXPECT_EQ(b.cholesky(a, true).type(), a.type());
  EXPECT_THAT(rejection([&] { (void)b.cholesky(wide, true); }), HasSubstr("square matrices"));
  EXPECT_THAT(rejection([&] { (void)b.cholesky(n, true); }), HasSubstr("must be floats"));
}

TEST(LinearAlgebra, TriangularSystems) {
  Builder b;
  const Value a = b.parameter(f32({3, 4, 4})), x = b.parameter(f32({3, 4, 2})),
              row = b.parameter(f32({3, 2, 4}));
  EXPECT_EQ(b.triangular_solve(a, x, {}).type(), x.type());
  EXPECT_EQ(b.triangular_solve(a, row, {.left = false}).type(), row.type());
  EXPECT_THAT(rejection([&] { (void)b.triangular_solve(a, row, {}); }), HasSubstr("(left side)"));
  EXPECT_THAT(rejection([&] { (void)b.triangular_solve(a, x, {.left = false}); }), HasSubstr("(right side)"));
  EXPECT_NE(rejection([&] { (void)b.triangular_solve(a, b.parameter(f32({4, 2})), {}); }), "");
  EXPECT_NE(rejection([&] { (void)b.triangular_solve(x, x, {}); }), "");
}

TEST(ComplexNumbers, HavePartsOfOneType) {
  Builder b;
  const Value x = b.parameter(f32({2})), n = b.parameter(s32({2}));
  const Value z = b.complex(x, x);
  EXPECT_EQ(z.type(), kC64);
  EXPECT_EQ(z.type().str(), "tensor<2xcomplex<f32>>");
  EXPECT_EQ(z.type().bytes(), 16u);
  EXPECT_EQ(b.real(z).type(), x.type());
  EXPECT_EQ(b.abs(z).type(), x.type());
  EXPECT_EQ(b.real(x), x);
  EXPECT_EQ(b.conjugate(x), x);
  EXPECT_EQ(b.splat(2, kC64).type(), kC64);
  EXPECT_THAT(rejection([&] { (void)b.complex(n, n); }), HasSubstr("must be f32 or f64"));
  EXPECT_NE(rejection([&] { (void)b.complex(x, b.parameter(f32({3}))); }), "");
}

TEST(ComplexNumbers, HaveNoOrder) {
  Builder b;
  const Value z = b.parameter(kC64);
  EXPECT_EQ(b.compare(z, z, Compare::kNe).type(), pred({2}));
  EXPECT_THAT(rejection([&] { (void)b.compare(z, z, Compare::kLt); }), HasSubstr("no order"));
  EXPECT_NE(rejection([&] { (void)b.maximum(z, z); }), "");
  EXPECT_NE(rejection([&] { (void)b.remainder(z, z); }), "");
  EXPECT_NE(rejection([&] { (void)b.lowest(DType::kC64); }), "");
  EXPECT_NE(rejection([&] { (void)b.constant(kC64, "0123456701234567"); }), "");
  EXPECT_NE(rejection([&] { (void)b.bitcast_convert(z, DType::kF64); }), "");
}

TEST(Fourier, HalvesWhatIsReal) {
  Builder b;
  const Value x = b.parameter(f32({3, 8})), z = b.parameter({DType::kC64, {3, 8}});
  const Value half = b.fft(x, Fft::kRealForward, 8);
  EXPECT_EQ(half.type(), (Type{DType::kC64, {3, 5}}));
  EXPECT_EQ(b.fft(half, Fft::kRealInverse, 8).type(), x.type());
  EXPECT_EQ(b.fft(half, Fft::kRealInverse, 9).type(), f32({3, 9}));
  EXPECT_EQ(b.fft(z, Fft::kForward, 8).type(), z.type());
  EXPECT_THAT(rejection([&] { (void)b.fft(z, Fft::kInverse, 7); }), HasSubstr("must have 7 elements"));
  EXPECT_NE(rejection([&] { (void)b.fft(x, Fft::kForward, 8); }), "");
  EXPECT_NE(rejection([&] { (void)b.fft(z, Fft::kRealForward, 8); }), "");
}

}  // namespace
}  // namespace sluice::stablehlo::testing
