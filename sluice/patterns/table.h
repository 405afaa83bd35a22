// All patterns. Each has a file with its name, whose first lines say what it matches and what it makes.
// Internal to this room.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sluice/ops/attention/sequence.h"
#include "sluice/stablehlo/kernel_library.h"
#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

using stablehlo::KernelLibrary;
using stablehlo::Rewriter;

// These patterns serve every target.
void broadcast_index(Rewriter& r);
void cross_entropy_gradient(Rewriter& r);
void folds(Rewriter& r);
// These two come after the loops.
void row_writes(Rewriter& r);
void sum_of_parts(Rewriter& r);
// This one, in the file of cross_entropy_gradient, serves targets whose compiler makes everything.
void label_scores(Rewriter& r);

// parameters: the numbers of the padded ones.
void padding(Rewriter& r, const std::vector<size_t>& parameters);

// Serves targets without kernels. Does nothing if groups.bytes is 0.
void attention_in_groups(Rewriter& r, const ops::attention::Groups& groups);
// Serves programs over a mesh. Does nothing unless its axis `sequence` has several devices.
void attention_over_sequence(Rewriter& r, const ops::attention::Groups& groups,
                             const ops::attention::Sequence& sequence);

// These patterns serve targets with kernels.
void attention(Rewriter& r, const KernelLibrary& kernels);
void batch_norm_gradient(Rewriter& r, const KernelLibrary& kernels);
void batch_norm_statistics(Rewriter& r, const KernelLibrary& kernels);
void bias_of_convolution(Rewriter& r, const KernelLibrary& kernels);
void bias_of_product(Rewriter& r, const KernelLibrary& kernels);
void convolution(Rewriter& r, const KernelLibrary& kernels);
void gelu(Rewriter& r, const KernelLibrary& kernels);
void layer_norm(Rewriter& r, const KernelLibrary& kernels);
void max_pooling(Rewriter& r, const KernelLibrary& kernels);
void optimizer_update(Rewriter& r, const KernelLibrary& kernels);
void product(Rewriter& r, const KernelLibrary& kernels);
void recurrent(Rewriter& r, const KernelLibrary& kernels);
void relu_gradient_of_product(Rewriter& r, const KernelLibrary& kernels);
void relu_of_batch_norm(Rewriter& r, const KernelLibrary& kernels);
void relu_of_product(Rewriter& r, const KernelLibrary& kernels);
void residual_of_product(Rewriter& r, const KernelLibrary& kernels);
void softmax(Rewriter& r, const KernelLibrary& kernels);
void sum_of_rows(Rewriter& r, const KernelLibrary& kernels);
// This one too, after the loops, whose arguments it groups.
void wide_concatenates(Rewriter& r);

struct Pattern {
  std::string_view name;
  void (*apply)(Rewriter& r, const KernelLibrary& kernels);
};
// Returns the patterns for targets with kernels, in the order in which they are applied.
std::span<const Pattern> kernel_patterns();

}  // namespace sluice::patterns
