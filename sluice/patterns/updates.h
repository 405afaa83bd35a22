// The element-wise operations at the end of a program that change its parameters in place, as an optimizer's
// step does: found here for the patterns that make calls of them. Internal to this room.
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
  Value vector;    // what the numbers are elements of: a run-time scalar is one; empty if there are none
  Dims numbers;    // their positions in it
  Values results;  // what main returns
  std::vector<const Operation*> operations;  // all that are part of it
};
// Updates with the same steps.
struct UpdateGroup {
  UpdateCode code;
  std::vector<Update> members;
};

// The groups whose results take their operands' memory. A group is worth a call when it has eight members or
// 65,536 elements.
std::vector<UpdateGroup> find_updates(const stablehlo::Rewriter& r);

// Where a product that nothing else reads makes the gradient of an update, and the target has a kernel for
// both at once: adds that call and returns its results. Else nothing. (update_in_product.cc)
Values update_in_product(stablehlo::Rewriter& r, const stablehlo::KernelLibrary& kernels,
                         const UpdateCode& code, const Update& update);

}  // namespace sluice::patterns
