// For tests: a library of kernels without kernels.
#pragma once

#include <string>

#include "sluice/ops/test_call.h"

namespace sluice::ops {

// Has a kernel for everything that it is asked for, or for nothing.
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
  bool has_with_update(const stablehlo::ProductCall& call) const override { return has(call); }
  bool has_all;
  mutable stablehlo::ConvolutionCall convolution;
  mutable stablehlo::ProductCall product;
  mutable stablehlo::AttentionCall attention;
};

// The program of a row's results.
inline std::string text_of(TestCall& call, const TestLibrary& library) {
  call.slots.library = &library;
  Emit e = call.emit();
  Values results;
  for (const Value value : find_row(e.op())->emit(e))
    if (value) results.push_back(value);
  return call.builder.finish(results, {});
}

}  // namespace sluice::ops
