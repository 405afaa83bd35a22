// A call that is run laid out over a mesh: a sample with sizes that the mesh divides, and LibTorch's answers.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tests/conformance/call.h"
#include "tests/conformance/judge.h"
#include "tests/conformance/sample.h"

namespace sluice::conformance {

struct Subject {
  Sample sample;  // with the sizes of this call
  std::optional<Op> op, in_place;
  Inputs inputs;
  std::string what;  // "f32, transposed"
  bool gradients = false;
  Outcome expected, wide;                    // wide: in f64, for f16 and bf16
  Outcome expected_in_place, wide_in_place;  // where there is an in-place form
};

// Makes the call in the sample's first element types, with operands that are views of this kind. Sizes that 4
// does not divide become larger where LibTorch takes the call so. Null if LibTorch refuses the call.
std::shared_ptr<const Subject> make_subject(const Sample& sample, View view);

}  // namespace sluice::conformance
