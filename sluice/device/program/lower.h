// Lowers a cut of the trace to the text of a program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/device/program/trace.h"
#include "sluice/device/program/value_checks.h"
#include "sluice/device/runtime.h"
#include "sluice/stablehlo/layer_work.h"

namespace sluice::device {

// The computation of a cut: the live part of the trace, renumbered. Two cuts with equal signatures are one
// program.
struct Plan {
  std::vector<uint32_t> nodes;     // live nodes of the trace, in order
  std::vector<uint32_t> leaves;    // leaves of the trace, in the order of the program's parameters
  std::vector<Ref> outputs;        // values of the trace, in the order of the program's results
  std::vector<LayoutRef> layouts;  // [result] with a mesh, else empty
  std::vector<int32_t> aliases;    // [parameter]: the result that takes its memory, or -1
  std::vector<uint64_t> signature;
  size_t scalars[kScalarClasses] = {};  // the number of scalars of each class
};

// Plans the cut of everything that is pending. `output_of[i]` is set to the result of the i-th pending
// storage. The caller holds the lock.
Plan make_plan(const Trace& trace, const World& world, std::vector<uint32_t>& output_of);

struct Lowered {
  std::string text;
  std::vector<ValueCheck> checks;  // if there are any, the program's last result is what they found
  stablehlo::Flops flops;          // the FLOPs of one replica
  stablehlo::LayerWorks layers;    // without their bytes
};

// Lowers a plan to the program's text. Its parameters are the leaves, then one vector for each scalar class
// in use.
Lowered lower(const Trace& trace, const Plan& plan, const World& world, bool donate);

// The run-time scalars of the cut, in the program's order.
struct Scalars {
  std::vector<float> f32;
  std::vector<int64_t> i64;
  std::vector<double> f64;
};
void gather_scalars(const Trace& trace, const Plan& plan, const World& world, Scalars& scalars);

// Returns a hash of the plan's program that is the same in every process.
uint64_t canonical_hash(const Trace& trace, const Plan& plan);

}  // namespace sluice::device
