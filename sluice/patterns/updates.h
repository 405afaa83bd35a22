// Finds the element-wise operations at the end of a program that change its parameters in place, as an
// optimizer's step does, for the patterns that make calls of them. Internal to this room.
#pragma once

#include <vector>

#include "sluice/patterns/calls.h"
#include "sluice/stablehlo/kernel_library.h"
#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

using stablehlo::UpdateCode;

// The update of one tensor, or of a few that read one another's results.
struct Update {
  Values tensors;  // first the parameters whose memory the results take, in the results' order
  Values units;    // values of one element
  Value vector;    // the vector whose elements are the run-time scalars; empty without scalars
  Dims numbers;    // the scalars' positions in the vector
  Values results;  // main's results
  std::vector<const Operation*> operations;  // all operations of the update
};
// Updates with the same steps.
struct UpdateGroup {
  UpdateCode code;
  std::vector<Update> members;
};

// Finds the groups whose results take their operands' memory. A group is worth a call if it has eight members
// or 65,536 elements.
std::vector<UpdateGroup> find_updates(const stablehlo::Rewriter& r);

// Adds a call that combines an update with the product that makes its gradient, if nothing else reads the
// product and the target has a kernel for both at once. Returns the call's results, else nothing.
// (update_in_product.cc)
Values update_in_product(stablehlo::Rewriter& r, const stablehlo::KernelLibrary& kernels,
                         const UpdateCode& code, const Update& update);

}  // namespace sluice::patterns
