// Patterns: what is made in a better way than its operations say, for the target at hand.
#pragma once

#include <vector>

#include "sluice/stablehlo/builder.h"
#include "sluice/stablehlo/flops.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::patterns {

// Rewrites the operations that the builder has, by the table in table.cc. results: what main will return;
// donations: one entry a parameter, or empty. kernels: those of the target, null where the compiler makes
// everything. flops: gets what the program computes, as it was built. loop_rounds: so many equal
// rounds in a row, or more, become a loop; 0: none do. Returns what main is to return, for Builder::finish().
// Threads: the builder's.
stablehlo::Values rewrite(stablehlo::Builder& b, stablehlo::Values results,
                          const std::vector<stablehlo::Donation>& donations,
                          const stablehlo::KernelLibrary* kernels, stablehlo::ProgramFlops* flops = nullptr,
                          size_t loop_rounds = 0);

// Fewer rounds run faster, and are compiled quickly enough, one after the other.
constexpr size_t kLoopRounds = 32;

}  // namespace sluice::patterns
