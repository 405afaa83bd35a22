#include "case.h"

namespace sluice::stablehlo::testing {

std::string program_of(const Case& c) {
  Builder b;
  Values parameters;
  for (const Input& input : c.inputs) parameters.push_back(b.parameter(input.type));
  const Values results = c.build(b, parameters);
  return b.finish(results, c.donations, c.replicas, c.name);
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& family : {elementwise_cases, constant_cases, shape_cases, index_cases, reduce_cases,
                             product_cases, linear_algebra_cases, control_cases, collective_cases}) {
    std::vector<Case> cases = family();
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

std::vector<double> ramp(int64_t n, double first, double step) {
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(first + static_cast<double>(i) * step);
  return values;
}

std::vector<double> noise(int64_t n, unsigned seed) {
  std::vector<double> values;
  unsigned state = seed * 2654435761u + 12345u;
  for (int64_t i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back((static_cast<double>(state >> 25) - 64) / 64);
  }
  return values;
}

}  // namespace sluice::stablehlo::testing
