// For tests: a library of kernels without kernels, and programs rewritten for it.
#pragma once

#include <string>

#include "sluice/ops/test_call.h"
#include "sluice/patterns/patterns.h"

namespace sluice::patterns {

// The tests rewrite rows.
using namespace ops;
using enum stablehlo::DType;

// Has a kernel for every call, or for none.
struct TestLibrary : stablehlo::KernelLibrary {
  explicit TestLibrary(bool all) : has_all(all) {}
  bool has(const stablehlo::ConvolutionCall& call) const override {
    convolution = call;
    return has_all;
  }
  bool has(const stablehlo::ProductCall& call) const override {
    product = call;
    return has_all;
  }
  bool has(const stablehlo::AttentionCall& call) const override {
    attention = call;
    return has_all;
  }
  bool has_recurrent() const override { return has_all; }
  bool has_with_update(const stablehlo::ProductCall& call) const override { return has(call); }
  bool has_all;
  mutable stablehlo::ConvolutionCall convolution;
  mutable stablehlo::ProductCall product;
  mutable stablehlo::AttentionCall attention;
};

// Returns the program of these results, for a target with these kernels.
inline std::string rewritten(Builder& b, const Values& results, const TestLibrary& library,
                             const std::vector<stablehlo::Donation>& donations = {}) {
  return b.finish(rewrite(b, results, donations, &library), donations);
}

// Returns the program of a row's results, for a target with these kernels.
inline std::string text_of(TestCall& call, const TestLibrary& library) {
  Emit e = call.emit();
  Values results;
  for (const Value value : find_row(e.op())->emit(e))
    if (value) results.push_back(value);
  return rewritten(call.builder, results, library);
}

}  // namespace sluice::patterns
