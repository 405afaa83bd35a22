// Patterns replace operations by faster ones for the target at hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/ops/attention/sequence.h"
#include "sluice/stablehlo/builder.h"
#include "sluice/stablehlo/flops.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::patterns {

// Which equal rounds in a row become one loop of the program.
struct LoopRule {
  size_t rounds = 0;  // the least number of rounds; 0: no loops
  // Layers, too: fewer rounds, if their loop leaves out this number of operations. The weights of all layers
  // are then copied into one tensor, of any size. 0: none.
  size_t saved = 0;
  static constexpr size_t kLayers = 4;  // fewer layers stay as they are

  bool layers() const { return saved > 0; }
  size_t least() const { return layers() && kLayers < rounds ? kLayers : rounds; }
  bool holds(size_t period, size_t count) const {
    return count >= rounds || (layers() && count >= kLayers && (count - 1) * period >= saved);
  }
};
// Fewer rounds run faster one after the other, and compile fast enough.
inline constexpr LoopRule kLongLoops{32};
// For compilers whose time and code grow with the number of layers.
inline constexpr LoopRule kLayerLoops{32, 400};

// Rewrites the builder's operations with the patterns in table.cc. results: main's results; donations: one
// entry for each parameter, or empty. kernels: the target's kernels, null if the compiler makes everything.
// flops: receives the operation counts of the program as it was built. loops: which equal rounds become
// loops. groups: the loop over heads that attention becomes, by default none. padded: the numbers of the
// parameters that are longer than the slice that the program reads of them. sequence: the mesh over which the
// program will lie, for attention. Returns main's new results, for
// Builder::finish(). Threads: the builder's.
stablehlo::Values rewrite(stablehlo::Builder& b, stablehlo::Values results,
                          const std::vector<stablehlo::Donation>& donations,
                          const stablehlo::KernelLibrary* kernels, stablehlo::ProgramFlops* flops = nullptr,
                          const LoopRule& loops = {}, const ops::attention::Groups& groups = {},
                          const std::vector<size_t>& padded = {},
                          const ops::attention::Sequence& sequence = {});

// Returns the names of the patterns that make calls of kernels, for KernelLibrary::leaves_out.
std::vector<std::string> kernel_pattern_names();

}  // namespace sluice::patterns
