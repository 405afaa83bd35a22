// Patterns replace operations by faster ones for the target at hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/stablehlo/builder.h"
#include "sluice/stablehlo/flops.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::patterns {

// Rewrites the builder's operations with the patterns in table.cc. results: main's results; donations: one
// entry for each parameter, or empty. kernels: the target's kernels, null if the compiler makes everything.
// flops: receives the operation counts of the program as it was built. loop_rounds: the number of equal
// rounds in a row from which they become a loop; 0: never. attention_bytes: the bytes of scores that
// attention makes at once, in a loop over groups of heads; 0: all of them. Returns main's new results, for
// Builder::finish(). Threads: the builder's.
stablehlo::Values rewrite(stablehlo::Builder& b, stablehlo::Values results,
                          const std::vector<stablehlo::Donation>& donations,
                          const stablehlo::KernelLibrary* kernels, stablehlo::ProgramFlops* flops = nullptr,
                          size_t loop_rounds = 0, int64_t attention_bytes = 0);

// Fewer rounds run faster one after the other, and compile fast enough.
constexpr size_t kLoopRounds = 32;

// Returns the names of the patterns that make calls of kernels, for KernelLibrary::leaves_out.
std::vector<std::string> kernel_pattern_names();

}  // namespace sluice::patterns
