#include "sluice/patterns/table.h"

#include "sluice/patterns/loops/loops.h"
#include "sluice/patterns/patterns.h"

namespace sluice::patterns {
namespace {

// The order matters in these cases: the gradient of batch normalization looks for ReLUs that are not calls
// yet; patterns that extend a product come after products; residual sums come after updates, from which they
// must not take a weight's decay.
constexpr Pattern kPatterns[] = {
    {"attention", attention},
    {"convolution", convolution},
    {"bias_of_convolution", bias_of_convolution},
    {"max_pooling", max_pooling},
    {"batch_norm_gradient", batch_norm_gradient},
    {"batch_norm_statistics", batch_norm_statistics},
    {"relu_of_batch_norm", relu_of_batch_norm},
    {"layer_norm", layer_norm},
    {"recurrent", recurrent},
    {"softmax", softmax},
    {"gelu", gelu},
    {"sum_of_rows", sum_of_rows},
    {"product", product},
    {"bias_of_product", bias_of_product},
    {"relu_of_product", relu_of_product},
    {"relu_gradient_of_product", relu_gradient_of_product},
    {"optimizer_update", optimizer_update},
    {"residual_of_product", residual_of_product},
};

}  // namespace

std::span<const Pattern> kernel_patterns() { return kPatterns; }

std::vector<std::string> kernel_pattern_names() {
  std::vector<std::string> names;
  for (const Pattern& pattern : kPatterns) names.emplace_back(pattern.name);
  return names;
}

stablehlo::Values rewrite(stablehlo::Builder& b, stablehlo::Values results,
                          const std::vector<stablehlo::Donation>& donations, const KernelLibrary* kernels,
                          stablehlo::ProgramFlops* flops, const LoopRule& rule,
                          const ops::attention::Groups& groups, const std::vector<size_t>& padded,
                          const ops::attention::Sequence& sequence) {
  Rewriter r(b, std::move(results), donations);
  if (flops != nullptr) *flops = stablehlo::count_flops(r.operations(), r.results());
  cross_entropy_gradient(r);
  broadcast_index(r);
  if (kernels != nullptr)
    for (const Pattern& pattern : kPatterns) {
      if (!kernels->leaves_out(pattern.name)) pattern.apply(r, *kernels);
    }
  else
    label_scores(r);
  attention_over_sequence(r, groups, sequence);
  attention_in_groups(r, groups);
  folds(r);  // after the patterns that match the operations as they are written
  padding(r, padded);
  loops(r, rule);   // also of the operations that the patterns made
  sum_of_parts(r);  // the loops know a faster form of both
  row_writes(r);
  if (kernels != nullptr) wide_concatenates(r);
  return r.finish();
}

}  // namespace sluice::patterns
