#include <limits>

#include "case.h"

namespace sluice::stablehlo::testing {
std::vector<Case> constant_cases() {
  Case splats{"splats", {}, {}, {}, 0, 1, {}};
  splats.build = [](Builder& b, const Values&) {
    return Values{b.splat(0.1, f32({2})),
                  b.splat(-0.0, f32()),
                  b.splat(kInf, f32()),
                  b.splat(kNaN, f32()),
                  b.splat(-kInf, {DType::kBF16, {}}),
                  b.splat(1.0 / 3, {DType::kF64, {}}),
                  b.splat(1e-45, f32()),
                  b.splat(65504, {DType::kF16, {}}),
                  b.splat(-1, {DType::kU8, {}}),
                  b.splat(-128, {DType::kS8, {}}),
                  b.splat(true, pred({3})),
                  b.lowest(DType::kF32),
                  b.highest(DType::kF16),
                  b.lowest(DType::kS64),
                  b.highest(DType::kU32),
                  b.lowest(DType::kPred),
                  b.highest(DType::kS16, {2}),
                  b.divide(b.splat(1.0, f32()), b.splat(-0.0, f32())),
                  b.splat(3.4028234663852886e38, f32()),
                  b.splat(16777217.0, f32())};
  };
  const double tenth = static_cast<double>(0.1f);
  splats.expected = {{tenth, tenth},
                     {-0.0},
                     {kInf},
                     {kNaN},
                     {-kInf},
                     {1.0 / 3},
                     {1.401298464324817e-45},
                     {65504},
                     {255},
                     {-128},
                     {1, 1, 1},
                     {-kInf},
                     {kInf},
                     {-0x1p63},
                     {4294967295.0},
                     {0},
                     {32767, 32767},
                     {-kInf},
                     {3.4028234663852886e38},
                     {16777216.0}};

  Case dense{"dense", {}, {}, {}, 0, 1, {}};
  dense.build = [](Builder& b, const Values&) {
    const float floats[] = {1.5f, -2, std::numeric_limits<float>::quiet_NaN(), 1e-40f, 0.1f, -0.0f};
    const int64_t longs[] = {INT64_MIN, -1, 0, INT64_C(4611686018427387904)};
    const uint8_t bytes[] = {0, 1, 128, 255};
    const bool truths[] = {true, false, true, true, false, false};
    const uint16_t brain[] = {0x3F80, 0xBF80, 0x4049};
    const float same[] = {2.5f, 2.5f, 2.5f, 2.5f};
    return Values{b.constant(f32({2, 3}), floats),
                  b.constant(s64({4}), longs),
                  b.constant({DType::kU8, {2, 2}}, bytes),
                  b.constant(pred({2, 3}), truths),
                  b.constant({DType::kBF16, {3}}, brain),
                  b.constant(f32({4}), same),
                  b.constant_i64({5, -6}),
                  b.constant(f32({0, 2}), nullptr),
                  b.iota(s32({2, 3}), 1),
                  b.iota(f32({2, 3}), 0),
                  b.constant(pred({1}), truths),
                  b.constant(f32(), floats)};
  };
  dense.expected = {{1.5, -2, kNaN, static_cast<double>(1e-40f), tenth, -0.0},
                    {-0x1p63, -1, 0, 0x1p62},
                    {0, 1, 128, 255},
                    {1, 0, 1, 1, 0, 0},
                    {1, -1, 3.140625},
                    {2.5, 2.5, 2.5, 2.5},
                    {5, -6},
                    {},
                    {0, 1, 2, 0, 1, 2},
                    {0, 0, 0, 1, 1, 1},
                    {1},
                    {1.5}};
  return {splats, dense};
}

}  // namespace sluice::stablehlo::testing
