// One call on the device beside what LibTorch's CPU gives, and whether they agree.
#pragma once

#include <string>
#include <vector>

#include "tests/conformance/call.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/sample.h"

namespace sluice::conformance {

// One call and what it should have given.
struct Open {
  const Sample* sample;
  std::string what;  // "f32 in place, sliced"
  std::string dtype;
  Outcome found, expected, wide;
  bool has_wide = false;
  bool gradients = false;
  bool values = true;  // false: statistics only
  bool main = false;   // the functional call in the sample's first types: LibTorch must be able to do it
};
// Returns an open call with nothing in it yet.
Open open_call(const Sample& sample, const Inputs& inputs, const std::string& what);

struct Verdict {
  std::vector<std::string> messages;  // one for each thing that differs
  bool skipped = false;               // LibTorch's CPU cannot do the call in this type
};
// Compares what was found, which the caller has brought to the host.
Verdict judge(const Open& open);

// Makes tensors whole and contiguous, as part of the open program, so that bringing them home needs no
// program of its own.
void make_dense(std::vector<at::Tensor>& tensors);
// Cuts the graph and waits. What an operation found by its values is thrown by the program that computes it,
// not by the call; "" if nothing was.
std::string error_of_program();
std::string first_line(const std::string& text);

}  // namespace sluice::conformance
