// In which ways the tensors of a call lie over the mesh.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "sluice/mesh/layout.h"
#include "sluice/mesh/mesh.h"
#include "tests/conformance/call.h"

namespace sluice::conformance {

// The devices of these runs: two along each of two axes.
inline const char* const kTwoByTwo = "data=2,fsdp=2";

struct Placing {
  enum class Kind { kWhole, kLaidOut, kUnreduced };
  Kind kind = Kind::kWhole;
  Layout layout = {};  // kLaidOut
};

struct Case {
  std::string name;              // "argument 0 [fsdp, -]"; "" if everything is whole
  std::vector<Placing> tensors;  // by their number in Inputs::tensors; the others are whole
  bool results = false;          // the results and gradients are laid out, too
};

// Returns all cases of these inputs: each dimension of each tensor over one axis and over both; two
// dimensions over one axis each; all tensors at once; sums that the devices hold parts of; results.
std::vector<Case> cases_of(const Inputs& inputs);
// Returns one case for each tensor that can be laid out.
std::vector<Case> few_cases_of(const Inputs& inputs);

// Returns the layout over both axes, of two dimensions if the mesh divides two; whole if it divides none.
Layout spread(c10::IntArrayRef sizes);

// Returns the host's tensor on the device. Broken: with a block in the wrong place, or without one device's
// part of the sum, which the comparison must see.
at::Tensor place(const Placing& placing, const at::Tensor& host, at::Device device, bool broken);
// Returns the tensors of a result, laid out by spread().
void spread_out(std::vector<at::Tensor>& tensors);

}  // namespace sluice::conformance
