// The element-wise operations at the end of a trace that change tensors in place, as an optimizer's step does
// for each parameter: found here, so that one call of a kernel does them all. Each would else be a piece of
// code of its own, which XLA compiles in some 15 ms on a CPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sluice/device/lower.h"
#include "sluice/stablehlo/builder.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::device {

// The update of one tensor, or of a few that read one another's results.
struct Update {
  std::vector<Ref> tensors;       // first the leaves whose memory the results take, in the results' order
  std::vector<Ref> units;         // tensors of one element
  std::vector<int64_t> numbers;   // positions in the program's f32 scalars
  std::vector<uint32_t> results;  // nodes
  std::vector<uint32_t> nodes;    // all that are done by it
  bool lowered = false;
};
// Updates with the same steps.
struct UpdateGroup {
  stablehlo::UpdateCode code;
  std::vector<Update> members;
};

// The groups of a plan whose results take their operands' memory. A group is worth a call when it has eight
// members or 65,536 elements. The caller holds the lock.
std::vector<UpdateGroup> find_updates(const Trace& trace, const Plan& plan);
// [node]: whether it belongs to a group.
std::vector<bool> nodes_of(const std::vector<UpdateGroup>& groups, size_t nodes);

// Adds a call for the members that are not lowered yet, if there are any. [node]: `values` gets their
// results. `numbers`: the program's f32 scalars.
void lower_updates(stablehlo::Builder& b, const UpdateGroup& group,
                   const std::function<stablehlo::Value(Ref)>& value_of, stablehlo::Value numbers,
                   std::vector<stablehlo::Values>& values);

}  // namespace sluice::device
