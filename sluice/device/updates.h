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

// Updates with the same steps. The values are in the order of the call's operands and results.
struct UpdateGroup {
  stablehlo::UpdateCode code;
  std::vector<Ref> operands;
  std::vector<int64_t> numbers;   // positions in the program's f32 scalars
  std::vector<uint32_t> results;  // nodes
  std::vector<uint32_t> nodes;    // all that the call stands for
  std::string name;               // "update of 161 tensors"
};

// The groups of a plan whose results take their operands' memory. A group is worth a call when it has eight
// members or 65,536 elements. The caller holds the lock.
std::vector<UpdateGroup> find_updates(const Trace& trace, const Plan& plan);
// [node]: whether it belongs to a group.
std::vector<bool> nodes_of(const std::vector<UpdateGroup>& groups, size_t nodes);

// Adds the call; its results are those of group.results. `numbers`: the program's f32 scalars.
stablehlo::Values call_update(stablehlo::Builder& b, const UpdateGroup& group,
                              const std::function<stablehlo::Value(Ref)>& value_of, stablehlo::Value numbers);

}  // namespace sluice::device
