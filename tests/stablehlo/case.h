// One program of the builder with its inputs and the numbers that it must give.
//
// A case is used twice: its text is compared with a file under tests/golden/stablehlo, and it is compiled and
// run by the real plugin. Expected numbers come from the C++ library, from plain loops or are worked out by
// hand.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sluice/stablehlo/builder.h"

namespace sluice::stablehlo::testing {

struct Input {
  Type type;
  std::vector<double> values;
};

struct Case {
  std::string name;
  std::vector<Input> inputs;
  std::function<Values(Builder&, const Values& parameters)> build;
  // One list a result; with several replicas, all results of replica 0, then of replica 1 and so on.
  std::vector<std::vector<double>> expected;
  double tolerance = 0;  // relative, beside the same amount absolute; 0: exact (a NaN equals a NaN)
  int replicas = 1;
  std::vector<Donation> donations;
};

std::string program_of(const Case& c);

std::vector<Case> all_cases();
std::vector<Case> elementwise_cases();
std::vector<Case> constant_cases();
std::vector<Case> shape_cases();
std::vector<Case> index_cases();
std::vector<Case> reduce_cases();
std::vector<Case> product_cases();
std::vector<Case> linear_algebra_cases();
std::vector<Case> control_cases();
std::vector<Case> collective_cases();

// Small helpers for the cases.
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline Type f32(const Dims& dims = {}) { return {DType::kF32, dims}; }
inline Type s32(const Dims& dims = {}) { return {DType::kS32, dims}; }
inline Type s64(const Dims& dims = {}) { return {DType::kS64, dims}; }
inline Type u32(const Dims& dims = {}) { return {DType::kU32, dims}; }
inline Type pred(const Dims& dims = {}) { return {DType::kPred, dims}; }
// The body of a reduction that adds.
inline Values sum(Builder& b, std::span<const Value> in) { return {b.add(in[0], in[1])}; }
// first, first + step, …: n numbers.
std::vector<double> ramp(int64_t n, double first = 0, double step = 1);
// n numbers between -1 and 1 that look random and are multiples of 1/64 (so that short sums of products are
// exact).
std::vector<double> noise(int64_t n, unsigned seed);

}  // namespace sluice::stablehlo::testing
