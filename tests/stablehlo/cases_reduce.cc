#include <limits>

#include "case.h"

namespace sluice::stablehlo::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Values greatest(Builder& b, std::span<const Value> in) { return {b.maximum(in[0], in[1])}; }

Case reductions() {
  Case c{"reductions",
         {{f32({2, 3}), {1, -2, 3, 4, kNaN, -6}},
          {s32({2, 3}), {1, 2, 3, 4, 5, 6}},
          {pred({2, 2}), {1, 1, 1, 0}},
          {f32({0, 2}), {}}},
         {},
         {},
         0,
         1,
         {}};
  c.build = [](Builder& b, const Values& p) {
    return Values{b.reduce_sum(p[0], {0}),    b.reduce_max(p[0], {1}),     b.reduce_min(p[0], {1}),
                  b.reduce_sum(p[1], {0, 1}), b.reduce_product(p[1], {1}), b.reduce_max(p[1], {0}),
                  b.reduce_min(p[1], {1, 0}), b.reduce_and(p[2], {1}),     b.reduce_or(p[2], {0}),
                  b.reduce_max(p[3], {0}),    b.reduce_sum(p[3], {0}),     b.reduce_min(p[3], {0}),
                  b.reduce_and(p[1], {1})};
  };
  c.expected = {{5, kNaN, -3}, {3, kNaN}, {-2, kNaN},     {21},   {6, 120},     {4, 5, 6}, {1},
                {1, 0},        {1, 1},    {-kInf, -kInf}, {0, 0}, {kInf, kInf}, {0, 4}};
  return c;
}

// The place of the largest element: a reduction of two operands.
Case argmax() {
  Case c{"argmax", {{f32({2, 4}), {1, 5, 5, 2, 9, 0, 3, 9}}}, {}, {{5, 9}, {1, 0}}, 0, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    const Value operands[] = {p[0], b.iota(s64({2, 4}), 1)};
    const Value inits[] = {b.lowest(DType::kF32), b.splat(0, s64())};
    return b.reduce(operands, inits, {1}, [](Builder& b, std::span<const Value> in) {
      const Value same = b.compare(in[0], in[2], Compare::kEq);
      const Value first =
          b.or_(b.compare(in[0], in[2], Compare::kGt), b.and_(same, b.compare(in[1], in[3], Compare::kLt)));
      return Values{b.select(first, in[0], in[2]), b.select(first, in[1], in[3])};
    });
  };
  return c;
}

Case windows() {
  Case c{"windows",
         {{f32({1, 1, 4, 4}), {1, 2, 3, 4, 8, 7, 6, 5, 9, 10, 11, 12, 16, 15, 14, 13}},
          {f32({1, 1, 2, 2}), {1, 2, 3, 4}}},
         {},
         {},
         0,
         1,
         {}};
  c.build = [](Builder& b, const Values& p) {
    const Value zero = b.splat(0, f32());
    const Value low = b.lowest(DType::kF32);
    Window pool;
    pool.sizes = {1, 1, 2, 2};
    pool.strides = {1, 1, 2, 2};
    Window padded = pool;
    padded.sizes = {1, 1, 3, 3};
    padded.padding = {{0, 0}, {0, 0}, {1, 1}, {1, 1}};
    Window dilated;
    dilated.sizes = {1, 1, 2, 2};
    dilated.window_dilations = {1, 1, 2, 2};
    Window spread;
    spread.sizes = {1, 1, 1, 3};
    spread.base_dilations = {1, 1, 1, 2};
    Values out = b.reduce_window({&p[0], 1}, {&low, 1}, pool, greatest);
    out.push_back(b.reduce_window({&p[0], 1}, {&zero, 1}, padded, sum)[0]);
    out.push_back(b.reduce_window({&p[0], 1}, {&zero, 1}, dilated, sum)[0]);
    out.push_back(b.reduce_window({&p[0], 1}, {&zero, 1}, spread, sum)[0]);
    out.push_back(b.select_and_scatter(
        p[0], p[1], zero, pool,
        [](Builder& b, std::span<const Value> in) { return Values{b.compare(in[0], in[1], Compare::kGe)}; },
        sum));
    return out;
  };
  // Sums over 3x3 with stride 2 and padding 1 begin at rows and columns -1 and 1.
  c.expected = {{8, 6, 16, 14},
                {18, 27, 65, 93},
                {1 + 3 + 9 + 11, 2 + 4 + 10 + 12, 8 + 6 + 16 + 14, 7 + 5 + 15 + 13},
                {3, 2, 5, 3, 7, 15, 7, 13, 6, 11, 19, 10, 21, 11, 23, 31, 15, 29, 14, 27},
                {0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4, 0}};
  return c;
}

Case sorts() {
  Case c{"sorts", {{f32({2, 4}), {3, 1, 2, 1, 5, 7, 6, 5}}, {s32({2, 4}), {0, 1, 2, 3, 0, 1, 2, 3}}},
         {},      {},
         0,       1,
         {}};
  c.build = [](Builder& b, const Values& p) {
    Values out = b.sort(p, 1, true, [](Builder& b, std::span<const Value> in) {
      return Values{b.compare(in[0], in[1], Compare::kLt)};
    });
    out.push_back(b.sort({&p[0], 1}, 0, false, [](Builder& b, std::span<const Value> in) {
      return Values{b.compare(in[0], in[1], Compare::kGt)};
    })[0]);
    return out;
  };
  c.expected = {{1, 1, 2, 3, 5, 5, 6, 7}, {1, 3, 2, 0, 0, 3, 2, 1}, {5, 7, 6, 5, 3, 1, 2, 1}};
  return c;
}

}  // namespace

std::vector<Case> reduce_cases() { return {reductions(), argmax(), windows(), sorts()}; }

}  // namespace sluice::stablehlo::testing
