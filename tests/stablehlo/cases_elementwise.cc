#include <algorithm>
#include <cfenv>
#include <cmath>

#include "case.h"

namespace sluice::stablehlo::testing {
namespace {

template <typename Function>
std::vector<double> map(const std::vector<double>& x, Function f) {
  std::vector<double> y;
  for (double v : x) y.push_back(f(v));
  return y;
}

template <typename Function>
std::vector<double> map(const std::vector<double>& a, const std::vector<double>& b, Function f) {
  std::vector<double> y;
  for (size_t i = 0; i < a.size(); ++i) y.push_back(f(a[i], b[i]));
  return y;
}

std::vector<double> rounded_to_f32(const std::vector<double>& x) {
  return map(x, [](double v) { return static_cast<double>(static_cast<float>(v)); });
}

double sign_of(double x) { return std::isnan(x) || x == 0 ? x : x > 0 ? 1 : -1; }

Case float_unary() {
  const auto x =
      rounded_to_f32({-2.5, -1.5, -1, -0.5, -0.125, 0, 0.3, 0.5, 1, 1.5, 2.5, 3.7, 20, kInf, -kInf, kNaN});
  Case c{"unary_float", {{f32({16}), x}}, {}, {}, 2e-6, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    const Value x = p[0];
    return Values{b.abs(x),    b.cbrt(x),  b.ceil(x),       b.cosine(x),    b.exp(x),
                  b.expm1(x),  b.floor(x), b.log(x),        b.log1p(x),     b.logistic(x),
                  b.negate(x), b.rsqrt(x), b.round_even(x), b.round_afz(x), b.sign(x),
                  b.sine(x),   b.sqrt(x),  b.tanh(x),       b.is_finite(x)};
  };
  using Function = double (*)(double);
  for (Function f : std::initializer_list<Function>{
           [](double v) { return std::fabs(v); }, [](double v) { return std::cbrt(v); },
           [](double v) { return std::ceil(v); }, [](double v) { return std::cos(v); },
           [](double v) { return std::exp(v); }, [](double v) { return std::expm1(v); },
           [](double v) { return std::floor(v); }, [](double v) { return std::log(v); },
           [](double v) { return std::log1p(v); }, [](double v) { return 1 / (1 + std::exp(-v)); },
           [](double v) { return -v; }, [](double v) { return 1 / std::sqrt(v); },
           [](double v) { return std::nearbyint(v); }, [](double v) { return std::round(v); }, sign_of,
           [](double v) { return std::sin(v); }, [](double v) { return std::sqrt(v); },
           [](double v) { return std::tanh(v); }, [](double v) { return std::isfinite(v) ? 1.0 : 0.0; }}) {
    c.expected.push_back(map(x, f));
  }
  return c;
}

// The operations of CHLO, on the arguments where each is defined.
Case chlo_unary() {
  const auto inner = rounded_to_f32({-0.9, -0.5, -0.1, 0.1, 0.25, 0.5, 0.75, 0.95});
  const auto outer = rounded_to_f32({1.0, 1.25, 1.5, 2.5, 3.7, 5, 8, 10});
  Case c{"chlo_unary", {{f32({8}), inner}, {f32({8}), outer}}, {}, {}, 1e-5, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    Values out;
    for (const char* name :
         {"acos", "asin", "atan", "asinh", "atanh", "cosh", "sinh", "tan", "erf", "erfc"}) {
      out.push_back(b.chlo(name, p[0]));
    }
    for (const char* name : {"acosh", "lgamma", "digamma"}) out.push_back(b.chlo(name, p[1]));
    out.push_back(b.chlo("erf", b.chlo("erf_inv", p[0])));
    return out;
  };
  using Function = double (*)(double);
  for (Function f : std::initializer_list<Function>{
           [](double v) { return std::acos(v); }, [](double v) { return std::asin(v); },
           [](double v) { return std::atan(v); }, [](double v) { return std::asinh(v); },
           [](double v) { return std::atanh(v); }, [](double v) { return std::cosh(v); },
           [](double v) { return std::sinh(v); }, [](double v) { return std::tan(v); },
           [](double v) { return std::erf(v); }, [](double v) { return std::erfc(v); }}) {
    c.expected.push_back(map(inner, f));
  }
  c.expected.push_back(map(outer, [](double v) { return std::acosh(v); }));
  c.expected.push_back(map(outer, [](double v) { return std::lgamma(v); }));
  // digamma is the derivative of lgamma.
  c.expected.push_back(map(outer, [](double v) {
    const long double h = 1e-4L, x = v;
    return static_cast<double>((std::lgamma(x + h) - std::lgamma(x - h)) / (2 * h));
  }));
  c.expected.push_back(inner);
  return c;
}

Case chlo_binary() {
  const std::vector<double> n = {0, 1, 2, 3}, x = {1.5, 2, 2.5, 4}, q = {2, 1.5, 1, 3};
  Case c{"chlo_binary", {{f32({4}), n}, {f32({4}), x}, {f32({4}), q}}, {}, {}, 1e-4, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    return Values{b.chlo("polygamma", p[0], p[1]), b.chlo("zeta", p[1], p[2]),
                  b.chlo("next_after", p[1], p[2])};
  };
  // The series: polygamma(n, x) = (-1)^(n+1) n! sum 1/(x+k)^(n+1), with the tail as an integral; digamma(1.5)
  // is known.
  const auto hurwitz = [](double s, double from) {
    double sum = 0;
    constexpr int kTerms = 200000;
    for (int k = 0; k < kTerms; ++k) sum += std::pow(from + k, -s);
    return sum + std::pow(from + kTerms - 0.5, 1 - s) / (s - 1);
  };
  c.expected = {{0.03648997397857652, -hurwitz(2, 2) * -1, -2 * hurwitz(3, 2.5), 6 * hurwitz(4, 4)},
                {hurwitz(1.5, 2), hurwitz(2, 1.5), hurwitz(2.5, 1), hurwitz(4, 3)},
                map(x, q, [](double a, double b) {
                  return std::nextafter(static_cast<float>(a), static_cast<float>(b));
                })};
  return c;
}

Case float_binary() {
  const auto a = rounded_to_f32({7.5, -7.5, 2, 0.25, 3, -3, kNaN, 1, kInf});
  const auto b = rounded_to_f32({2, 2, -0.5, 3, 3, 5, 1, kNaN, 2});
  Case c{"binary_float", {{f32({9}), a}, {f32({9}), b}}, {}, {}, 1e-6, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    return Values{b.add(p[0], p[1]),     b.subtract(p[0], p[1]),  b.multiply(p[0], p[1]),
                  b.divide(p[0], p[1]),  b.remainder(p[0], p[1]), b.power(b.abs(p[0]), p[1]),
                  b.maximum(p[0], p[1]), b.minimum(p[0], p[1]),   b.atan2(p[0], p[1])};
  };
  using Function = double (*)(double, double);
  for (Function f : std::initializer_list<Function>{
           [](double x, double y) { return x + y; }, [](double x, double y) { return x - y; },
           [](double x, double y) { return x * y; }, [](double x, double y) { return x / y; },
           [](double x, double y) { return std::fmod(x, y); },
           // The power of 1 is 1 even for a NaN, in C's library and in XLA.
           [](double x, double y) { return std::pow(std::fabs(x), y); },
           [](double x, double y) { return std::isnan(x) || std::isnan(y) ? kNaN : std::max(x, y); },
           [](double x, double y) { return std::isnan(x) || std::isnan(y) ? kNaN : std::min(x, y); },
           [](double x, double y) { return std::atan2(x, y); }}) {
    c.expected.push_back(map(a, b, f));
  }
  return c;
}

Case integers() {
  const std::vector<double> a = {12, -7, 5, 0, 1, -128}, b = {5, 2, 3, 4, 1, 1};
  Case c{
      "integers", {{s32({6}), a}, {s32({6}), b}, {u32({6}), {12, 7, 4294967295.0, 0, 1, 128}}}, {}, {}, 0, 1,
      {}};
  c.build = [](Builder& b, const Values& p) {
    return Values{b.add(p[0], p[1]),
                  b.divide(p[0], p[1]),
                  b.remainder(p[0], p[1]),
                  b.and_(p[0], p[1]),
                  b.or_(p[0], p[1]),
                  b.xor_(p[0], p[1]),
                  b.not_(p[0]),
                  b.shift_left(p[0], p[1]),
                  b.shift_right_arithmetic(p[0], p[1]),
                  b.shift_right_logical(p[0], p[1]),
                  b.abs(p[0]),
                  b.sign(p[0]),
                  b.negate(p[0]),
                  b.popcount(p[2]),
                  b.abs(p[2]),
                  b.sign(p[2]),
                  b.power(p[0], p[1]),
                  b.maximum(p[0], p[1])};
  };
  using Function = int32_t (*)(int32_t, int32_t);
  std::vector<std::vector<double>> rows;
  for (Function f : std::initializer_list<Function>{
           [](int32_t x, int32_t y) { return x + y; }, [](int32_t x, int32_t y) { return x / y; },
           [](int32_t x, int32_t y) { return x % y; }, [](int32_t x, int32_t y) { return x & y; },
           [](int32_t x, int32_t y) { return x | y; }, [](int32_t x, int32_t y) { return x ^ y; },
           [](int32_t x, int32_t) { return ~x; },
           [](int32_t x, int32_t y) { return static_cast<int32_t>(static_cast<uint32_t>(x) << y); },
           [](int32_t x, int32_t y) { return x >> y; },
           [](int32_t x, int32_t y) { return static_cast<int32_t>(static_cast<uint32_t>(x) >> y); },
           [](int32_t x, int32_t) { return x < 0 ? -x : x; },
           [](int32_t x, int32_t) { return (x > 0) - (x < 0); }, [](int32_t x, int32_t) { return -x; }}) {
    rows.push_back(map(a, b, [f](double x, double y) {
      return static_cast<double>(f(static_cast<int32_t>(x), static_cast<int32_t>(y)));
    }));
  }
  rows.push_back({2, 3, 32, 0, 1, 1});
  rows.push_back({12, 7, 4294967295.0, 0, 1, 128});
  rows.push_back({1, 1, 1, 0, 1, 1});
  rows.push_back({248832, 49, 125, 0, 1, -128});
  rows.push_back({12, 2, 5, 4, 1, 1});
  c.expected = rows;
  return c;
}

Case predicates() {
  Case c{"predicates", {{pred({4}), {0, 0, 1, 1}}, {pred({4}), {0, 1, 0, 1}}}, {}, {}, 0, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    return Values{b.and_(p[0], p[1]),    b.or_(p[0], p[1]),     b.xor_(p[0], p[1]),
                  b.not_(p[0]),          b.add(p[0], p[1]),     b.multiply(p[0], p[1]),
                  b.maximum(p[0], p[1]), b.minimum(p[0], p[1]), b.compare(p[0], p[1], Compare::kLt)};
  };
  c.expected = {{0, 0, 0, 1}, {0, 1, 1, 1}, {0, 1, 1, 0}, {1, 1, 0, 0}, {0, 1, 1, 1},
                {0, 0, 0, 1}, {0, 1, 1, 1}, {0, 0, 0, 1}, {0, 1, 0, 0}};
  return c;
}

Case comparisons() {
  Case c{"compare", {{f32({4}), {1, 2, 3, kNaN}}, {f32({4}), {2, 2, 2, kNaN}}, {u32({2}), {4294967295.0, 1}}},
         {},        {},
         0,         1,
         {}};
  c.build = [](Builder& b, const Values& p) {
    Values out;
    for (Compare d : {Compare::kEq, Compare::kNe, Compare::kLt, Compare::kLe, Compare::kGt, Compare::kGe}) {
      out.push_back(b.compare(p[0], p[1], d));
    }
    out.push_back(b.compare(p[2], b.splat(2, p[2].type()), Compare::kGt));
    out.push_back(b.select(out[2], p[0], p[1]));
    out.push_back(b.select(b.splat(1, pred()), p[0], p[1]));
    out.push_back(b.clamp(b.splat(1.5, f32()), p[0], b.splat(2.5, f32())));
    out.push_back(b.clamp(p[1], p[0], p[1]));
    return out;
  };
  c.expected = {{0, 1, 0, 0},    {1, 0, 1, 1},        {1, 0, 0, 0},   {1, 1, 0, 0},
                {0, 0, 1, 0},    {0, 1, 1, 0},        {1, 0},         {1, 2, 2, kNaN},
                {1, 2, 3, kNaN}, {1.5, 2, 2.5, kNaN}, {2, 2, 2, kNaN}};
  return c;
}

Case conversions() {
  Case c{"convert",
         {{f32({5}), {-1.5, 0, 0.99609375, 2.5, 100}},
          {s32({3}), {-1, 0, 300}},
          {{DType::kF64, {2}}, {1.0 / 3, -2}}},
         {},
         {},
         0,
         1,
         {}};
  c.build = [](Builder& b, const Values& p) {
    return Values{b.convert(p[0], DType::kS32),
                  b.convert(p[0], DType::kPred),
                  b.convert(p[0], DType::kBF16),
                  b.convert(p[0], DType::kF16),
                  b.convert(p[1], DType::kU8),
                  b.convert(p[1], DType::kF32),
                  b.convert(p[1], DType::kS64),
                  b.convert(p[2], DType::kF32),
                  b.bitcast_convert(p[1], DType::kU32),
                  b.bitcast_convert(p[0], DType::kU32),
                  b.convert(b.convert(p[1], DType::kPred), DType::kS8)};
  };
  // 0.99609375 = 255/256 is a bf16. Integers are cut to the narrower type's bits.
  c.expected = {{-1, 0, 0, 2, 100},
                {1, 0, 1, 1, 1},
                {-1.5, 0, 0.99609375, 2.5, 100},
                {-1.5, 0, 0.99609375, 2.5, 100},
                {255, 0, 44},
                {-1, 0, 300},
                {-1, 0, 300},
                {static_cast<double>(1.0f / 3), -2},
                {4294967295.0, 0, 300},
                {0xBFC00000, 0, 0x3F7F0000, 0x40200000, 0x42C80000},
                {1, 0, 1}};
  return c;
}

// The other float types go through the plugin as well.
Case other_floats() {
  const std::vector<double> x = {-2, -0.5, 0.25, 1, 3};
  Case c{"other_floats",
         {{{DType::kBF16, {5}}, x}, {{DType::kF16, {5}}, x}, {{DType::kF64, {5}}, x}},
         {},
         {},
         1e-2,
         1,
         {}};
  c.build = [](Builder& b, const Values& p) {
    Values out;
    for (Value v : p) {
      for (Value y : {b.exp(v), b.chlo("erf", v), b.logistic(v), b.add(v, b.splat(0.1, v.type()))})
        out.push_back(y);
    }
    return out;
  };
  for (int i = 0; i < 3; ++i) {
    c.expected.push_back(map(x, [](double v) { return std::exp(v); }));
    c.expected.push_back(map(x, [](double v) { return std::erf(v); }));
    c.expected.push_back(map(x, [](double v) { return 1 / (1 + std::exp(-v)); }));
    c.expected.push_back(map(x, [](double v) { return v + 0.1; }));
  }
  return c;
}

// A NaN wins on either side, in the way written out and beside a constant.
Case not_a_number() {
  const std::vector<double> a = {1, kNaN, 2, 3}, b = {kNaN, 1, 5, -1};
  Case c{"not_a_number", {{f32({4}), a}, {f32({4}), b}}, {}, {}, 0, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    const Value zero = b.broadcast(b.splat(0, f32()), {4});
    Values out = {b.maximum(p[0], p[1]),
                  b.minimum(p[0], p[1]),
                  b.maximum(p[0], zero),
                  b.minimum(zero, p[1]),
                  b.reduce_max(p[1], {0}),
                  b.reduce_min(p[1], {0}),
                  b.reduce_max(b.slice_dim(p[1], 0, 1, 4), {0}, false)};
    b.set_explicit_nan(false);
    out.push_back(b.maximum(b.slice_dim(p[0], 0, 2, 4), b.slice_dim(p[1], 0, 2, 4)));
    out.push_back(b.reduce_min(b.slice_dim(p[1], 0, 1, 4), {0}));
    return out;
  };
  c.expected = {{kNaN, kNaN, 5, 3},
                {kNaN, kNaN, 2, -1},
                {1, kNaN, 2, 3},
                {kNaN, 0, 0, -1},
                {kNaN},
                {kNaN},
                {5},
                {5, 3},
                {-1}};
  return c;
}

}  // namespace

std::vector<Case> elementwise_cases() {
  return {float_unary(), chlo_unary(),  chlo_binary(), float_binary(), integers(),
          predicates(),  comparisons(), conversions(), not_a_number(), other_floats()};
}

}  // namespace sluice::stablehlo::testing
