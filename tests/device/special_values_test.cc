// Signs of zeros, tails far below 1, and huge, tiny and infinite numbers: what conformance does not see,
// because its tolerance is relative and absolute at a time.
#include <ATen/ops/_scaled_mm.h>

#include <limits>

#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using testing::HasSubstr;
using Unary = std::function<torch::Tensor(const torch::Tensor&)>;

constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

// LibTorch's softshrink of -0 is 0 in whole registers and -0 in what is left over, and its gelu of an f32 of
// -0 is 0: neither is here.
std::vector<std::pair<const char*, Unary>> functions_of_zero() {
  return {{"hardshrink", [](const auto& x) { return torch::hardshrink(x); }},
          {"threshold", [](const auto& x) { return torch::threshold(x, -1, 5); }},
          {"relu", [](const auto& x) { return torch::relu(x); }},
          {"hardtanh", [](const auto& x) { return torch::hardtanh(x); }},
          {"hardswish", [](const auto& x) { return torch::hardswish(x); }},
          {"leaky_relu", [](const auto& x) { return torch::leaky_relu(x); }},
          {"elu", [](const auto& x) { return torch::elu(x); }},
          {"silu", [](const auto& x) { return torch::silu(x); }},
          {"mish", [](const auto& x) { return torch::mish(x); }},
          {"gelu by tanh", [](const auto& x) { return torch::gelu(x, "tanh"); }},
          {"erf", [](const auto& x) { return torch::erf(x); }},
          {"erfinv", [](const auto& x) { return torch::erfinv(x); }},
          {"asinh", [](const auto& x) { return torch::asinh(x); }},
          {"sinh", [](const auto& x) { return torch::sinh(x); }},
          {"tan", [](const auto& x) { return torch::tan(x); }},
          {"atan", [](const auto& x) { return torch::atan(x); }},
          {"asin", [](const auto& x) { return torch::asin(x); }},
          {"atanh", [](const auto& x) { return torch::atanh(x); }},
          {"expm1", [](const auto& x) { return torch::expm1(x); }},
          {"log1p", [](const auto& x) { return torch::log1p(x); }},
          {"digamma", [](const auto& x) { return torch::digamma(x); }},
          {"lgamma", [](const auto& x) { return torch::lgamma(x); }},
          {"sinc", [](const auto& x) { return torch::sinc(x); }},
          {"frac", [](const auto& x) { return torch::frac(x); }},
          {"trunc", [](const auto& x) { return torch::trunc(x); }},
          {"round", [](const auto& x) { return torch::round(x); }},
          {"reciprocal", [](const auto& x) { return torch::reciprocal(x); }},
          {"rsqrt", [](const auto& x) { return torch::rsqrt(x); }}};
}

// LibTorch has these for f32 and f64 only.
std::vector<std::pair<const char*, Unary>> bessel_functions() {
  return {{"j0", [](const auto& x) { return torch::special_bessel_j0(x); }},
          {"j1", [](const auto& x) { return torch::special_bessel_j1(x); }},
          {"y0", [](const auto& x) { return torch::special_bessel_y0(x); }},
          {"y1", [](const auto& x) { return torch::special_bessel_y1(x); }},
          {"i1", [](const auto& x) { return torch::special_modified_bessel_i1(x); }},
          {"k1", [](const auto& x) { return torch::special_modified_bessel_k1(x); }},
          {"spherical j0", [](const auto& x) { return torch::special_spherical_bessel_j0(x); }}};
}

void expect_signs(const std::vector<std::pair<const char*, Unary>>& functions, torch::ScalarType type) {
  const torch::Tensor zeros = torch::tensor({0.0, -0.0}, type), there = zeros.to(test_device());
  for (const auto& [name, function] : functions) {
    const torch::Tensor found = function(there).cpu(), expected = function(zeros);
    EXPECT_TRUE(torch::equal(found.signbit(), expected.signbit()))
        << name << " of " << type << ": " << found << ", expected " << expected;
  }
}

TEST(SpecialValues, FunctionsOfZeroHaveTheSignsOfLibTorch) {
  for (const torch::ScalarType type : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf})
    expect_signs(functions_of_zero(), type);
  for (const torch::ScalarType type : {torch::kFloat, torch::kDouble}) expect_signs(bessel_functions(), type);
}

// XLA makes one clamp of a maximum and a minimum with constants, and its older code for CPUs lost the NaN
// there.
TEST(SpecialValues, FunctionsWithTwoBoundsKeepNaN) {
  const std::vector<std::pair<const char*, Unary>> functions = {
      {"hardsigmoid", [](const auto& x) { return torch::hardsigmoid(x); }},
      {"hardswish", [](const auto& x) { return torch::hardswish(x); }},
      {"hardtanh", [](const auto& x) { return torch::hardtanh(x); }},
      {"relu6", [](const auto& x) { return torch::relu6(x); }},
      {"logit", [](const auto& x) { return torch::logit(x, 0.1); }},
      {"clamp", [](const auto& x) { return torch::clamp(x, -1, 1); }},
      {"float8", [](const auto& x) { return x.to(torch::kFloat8_e4m3fn).to(torch::kFloat); }}};
  const torch::Tensor x = torch::tensor({kNaN, -kNaN, 0.3f, 500.f, -500.f});
  for (const auto& [name, function] : functions)
    expect_same(function(x.to(test_device())), function(x), 1e-6, name);
}

TEST(SpecialValues, SoftshrinkKeepsTheSignOfZero) {
  if (on_cpu()) GTEST_SKIP();
  for (const torch::ScalarType type : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
    const torch::Tensor x = torch::tensor({0.0, -0.0, 0.3, -0.3}, type);
    EXPECT_TRUE(torch::equal(torch::softshrink(x.to(test_device())).cpu().signbit(), x.signbit())) << type;
  }
}

// 1 + erf(x) has lost its digits there, for LibTorch as well. The right value is from erfc in f64. 5,000
// elements are a kernel's, 500 are XLA's.
TEST(SpecialValues, GeluFarBelowZeroIsRightTo6e7) {
  for (const int64_t count : {500, 5000, 200000}) {
    const torch::Tensor x = torch::linspace(-14, -1, count), wide = x.to(torch::kDouble);
    const torch::Tensor right = wide * 0.5 * torch::erfc(wide * -M_SQRT1_2);
    const torch::Tensor found = torch::gelu(x.to(test_device())).cpu().to(torch::kDouble);
    EXPECT_LE((found - right).abs().max().item<double>(), on_cpu() ? 4e-7 : 6e-7) << count;
  }
}

// grad * exp(x) overflows, which is a part of LibTorch's formula.
TEST(SpecialValues, GradientOfSoftplusDoesNotOverflow) {
  if (on_cpu()) GTEST_SKIP();
  const auto gradient = [](const torch::Tensor& grad, const torch::Tensor& x) {
    torch::Tensor leaf = x.to(test_device()).requires_grad_();
    return torch::autograd::grad({torch::nn::functional::softplus(leaf)}, {leaf}, {grad.to(test_device())})[0]
        .cpu();
  };
  const torch::Tensor grad = torch::tensor({3e38f, -3e38f}), x = torch::tensor({1.f, 15.f});
  const torch::Tensor right = grad.to(torch::kDouble) * x.to(torch::kDouble).sigmoid();
  expect_same(gradient(grad, x) / 1e38, (right / 1e38).to(torch::kFloat), 1e-6);
}

// ---- complex numbers ----

torch::Tensor grid(const std::vector<double>& sizes, torch::ScalarType type) {
  std::vector<double> both;
  for (const double size : sizes) both.insert(both.end(), {size, -size});
  const torch::Tensor line = torch::tensor(both, torch::kDouble);
  const std::vector<torch::Tensor> parts = torch::meshgrid({line, line}, "ij");
  return torch::complex(parts[0].flatten(), parts[1].flatten()).to(type);
}

torch::Tensor parts_of(const torch::Tensor& x) {
  return (x.is_complex() ? torch::view_as_real(x) : x.unsqueeze(-1)).to(torch::kDouble);
}

// Each part agrees to `relative`. Parts below the smallest normal number count as 0.
void expect_parts(const std::string& name, const torch::Tensor& x, const torch::Tensor& found,
                  const torch::Tensor& expected, double relative) {
  const torch::Tensor a = parts_of(found), b = parts_of(expected);
  const double tiny = x.scalar_type() == torch::kComplexFloat ? 1.2e-38 : 2.3e-308;
  const torch::Tensor near = (a - b).abs().le(b.abs() * relative + tiny);
  const torch::Tensor bad =
      near.logical_or(a.eq(b)).logical_or(a.isnan().logical_and(b.isnan())).logical_not();
  const torch::Tensor places = bad.any(-1).nonzero().flatten();
  if (places.numel() == 0) return;
  const int64_t first = places[0].item<int64_t>();
  ADD_FAILURE() << name << " differs in " << places.numel() << " of " << x.numel() << " places, first at "
                << torch::view_as_real(x)[first] << ": found " << a[first] << ", expected " << b[first];
}

std::vector<std::pair<const char*, Unary>> complex_functions() {
  return {{"abs", [](const auto& x) { return torch::abs(x); }},
          {"angle", [](const auto& x) { return torch::angle(x); }},
          {"sqrt", [](const auto& x) { return torch::sqrt(x); }},
          {"rsqrt", [](const auto& x) { return torch::rsqrt(x); }},
          {"log", [](const auto& x) { return torch::log(x); }},
          {"log10", [](const auto& x) { return torch::log10(x); }},
          {"log1p", [](const auto& x) { return torch::log1p(x); }},
          {"sin", [](const auto& x) { return torch::sin(x); }},
          {"cos", [](const auto& x) { return torch::cos(x); }},
          {"expm1", [](const auto& x) { return torch::expm1(x); }},
          {"tanh", [](const auto& x) { return torch::tanh(x); }},
          {"reciprocal", [](const auto& x) { return torch::reciprocal(x); }},
          {"x / (3 - 2i)", [](const auto& x) { return x / c10::complex<double>(3, -2); }},
          {"pow -1.5", [](const auto& x) { return torch::pow(x, -1.5); }}};
}

// Not 0: there LibTorch has NaN in the imaginary part of some. Not 3e38 + 3e38i, whose sgn LibTorch has as 0.
TEST(SpecialValues, ComplexFunctionsAreRightFarFromOne) {
  const struct {
    torch::ScalarType type;
    std::vector<double> sizes;
    double relative;
  } cases[] = {{torch::kComplexFloat, {1, 2.5, 1e-3, 1e-10, 1e-20, 1e10, 1e20, 3e37}, 2e-5},
               {torch::kComplexDouble, {1, 2.5, 1e-3, 1e-20, 1e-150, 1e20, 1e200, 1e307}, 1e-12}};
  for (const auto& [type, sizes, relative] : cases) {
    const torch::Tensor x = grid(sizes, type), there = x.to(test_device());
    for (const auto& [name, function] : complex_functions())
      expect_parts(name, x, function(there).cpu(), function(x), relative);
    expect_parts("sgn", x, torch::sgn(there).cpu(), torch::sgn(x.to(torch::kComplexDouble)), relative);
  }
}

TEST(SpecialValues, ComplexFunctionsOfInfinitiesAndNaN) {
  for (const torch::ScalarType type : {torch::kComplexFloat, torch::kComplexDouble}) {
    const torch::Tensor x = grid({0, 1.5, kInf, kNaN}, type), there = x.to(test_device());
    for (const auto& [name, function] : complex_functions()) {
      const std::string_view known = name;
      if (known == "abs" || known == "angle" || known == "sqrt" || known == "log")
        expect_parts(name, x, function(there).cpu(), function(x), 1e-5);
    }
  }
}

TEST(SpecialValues, ComplexZerosDivideWithoutTheirSigns) {
  const torch::Tensor zeros = grid({0}, torch::kComplexFloat), one = torch::ones({4}, torch::kComplexFloat);
  expect_parts("reciprocal", zeros, torch::reciprocal(zeros.to(test_device())).cpu(),
               torch::reciprocal(zeros), 0);
  expect_parts("/", zeros, (one.to(test_device()) / zeros.to(test_device())).cpu(), one / zeros, 0);
}

// ---- statistics, products, types ----

// XLA's code has the mean of a batch with an infinity, and so have the running statistics.
TEST(SpecialValues, MeansOfBatchesWithInfinities) {
  const std::vector<std::vector<float>> batches = {
      {-kInf, 1, 2, 3}, {1, 2, 3, kInf}, {kInf, kInf, 1, 1}, {kInf, -kInf, 1, 2}, {1, 2, kNaN, 3}};
  for (const std::vector<float>& batch : batches) {
    const auto run = [&](torch::Device device) {
      const torch::Tensor x = torch::tensor(batch).view({4, 1}).to(device);
      torch::Tensor mean = torch::zeros({1}).to(device), variance = torch::ones({1}).to(device);
      const auto [y, saved, inverse] = torch::native_batch_norm(x, {}, {}, mean, variance, true, 0.1, 1e-5);
      return torch::cat({y.flatten(), saved, inverse, mean, variance}).cpu();
    };
    expect_same(run(test_device()), run(torch::kCPU), 1e-6, std::to_string(batch[0]));
  }
  const auto tested = [&](torch::Device device) {
    const torch::Tensor x = torch::tensor({{-kInf, 1.f}, {2.f, kInf}}).to(device);
    return torch::batch_norm(x, {}, {}, torch::zeros({2}).to(device), torch::ones({2}).to(device), false, 0.1,
                             1e-5, false);
  };
  expect_same(tested(test_device()), tested(torch::kCPU), 1e-6);
}

// The scales multiply the operands, not the product, so that an infinite one makes NaN of a 0. Where the
// result is float8 and too large for it, LibTorch's product gives the largest number on one CPU and NaN on
// another, so its product in f32 is converted instead.
TEST(SpecialValues, ScalesOfFloat8Products) {
  const struct {
    float element, scale_a, scale_b;
  } cases[] = {{2, 3, 0.5}, {0, kInf, 1}, {2, kInf, 1}, {2, kInf, 0}, {0, 1e30, 1e30}, {2, 1e37, 1e-37}};
  for (const auto& [element, scale_a, scale_b] : cases) {
    const auto product = [&, element = element, scale_a = scale_a, scale_b = scale_b](
                             torch::Device device, torch::ScalarType type) {
      torch::Tensor x = torch::full({16, 16}, 2.f);
      x[0][0] = element;
      const torch::Tensor self = x.to(torch::kFloat8_e4m3fn).to(device);
      const torch::Tensor mat2 = torch::ones({16, 16}).to(torch::kFloat8_e4m3fn).to(device).t();
      std::optional<torch::Tensor> result_scale;
      if (type == torch::kFloat8_e4m3fn) result_scale = torch::tensor(4.f).to(device);
      return at::_scaled_mm(self, mat2, torch::tensor(scale_a).to(device), torch::tensor(scale_b).to(device),
                            {}, result_scale, type)
          .cpu();
    };
    for (const torch::ScalarType type : {torch::kFloat, torch::kFloat8_e4m3fn, torch::kBFloat16}) {
      const torch::Tensor expected = type == torch::kFloat8_e4m3fn
                                         ? (product(torch::kCPU, torch::kFloat) / 4).to(type)
                                         : product(torch::kCPU, type);
      expect_same(product(test_device(), type).to(torch::kFloat), expected.to(torch::kFloat), 1e-2,
                  c10::str(type, " of ", element, " scaled by ", scale_a));
    }
  }
}

TEST(SpecialValues, LerpWantsOneType) {
  const auto floats = [](torch::ScalarType type) { return torch::ones({3}, type).to(test_device()); };
  const auto lerp = [](const torch::Tensor& self, const torch::Tensor& end, const torch::Tensor& weight) {
    return thrown([&] { torch::lerp(self, end, weight).cpu(); });
  };
  const torch::Tensor f32 = floats(torch::kFloat), f64 = floats(torch::kDouble), i64 = floats(torch::kLong);
  EXPECT_THAT(lerp(i64, f64, f64), HasSubstr("'end'"));
  EXPECT_THAT(lerp(f32, f64, f32), HasSubstr("'end'"));
  EXPECT_THAT(lerp(f32, f32, f64), HasSubstr("'weight'"));
  EXPECT_THAT(lerp(f32, i64, f32), HasSubstr("'end'"));
  EXPECT_THAT(lerp(i64, i64, i64), HasSubstr("floats"));
  EXPECT_THAT(thrown([&] { torch::lerp(i64, i64, 0.5).cpu(); }), HasSubstr("floats"));
  EXPECT_THAT(thrown([&] { torch::lerp(f32, f64, 0.5).cpu(); }), HasSubstr("'end'"));
  EXPECT_THAT(thrown([&] { f32.clone().lerp_(f64, 0.5); }), HasSubstr("'end'"));
  // A weight without dimensions is a number, which may make the result another type.
  const torch::Tensor from = torch::tensor({0, 4}), to = torch::tensor({8, 5}), weight = torch::tensor(0.25f);
  expect_same(torch::lerp(from.to(test_device()), to.to(test_device()), weight.to(test_device())),
              torch::lerp(from, to, weight), 1e-6);
  expect_same(torch::lerp(f32, f32 * 3, weight.to(test_device()).to(torch::kDouble)), torch::full({3}, 1.5f),
              0);
}

}  // namespace
}  // namespace sluice::tests
