// Finds the convolutions that share their activations with no other layer. Internal to this room.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

// Element-wise operations keep an activation's order in memory. A convolution is lone if all its activations
// come from main's parameters, and go to main's results and to sums, only through such operations: then no
// layer gains from an order of dimensions other than the order of main's parameters and results.
class LoneConvolutions {
 public:
  // Examines the composites; the result stays valid when passes change the program.
  explicit LoneConvolutions(const stablehlo::Rewriter& r);
  // Returns whether op is the composite of a lone convolution, or a reduction of such a convolution's
  // activation.
  bool has(const stablehlo::Operation& op) const {
    return !op.results.empty() && found_.contains(op.results.front().id());
  }

 private:
  std::unordered_set<int32_t> found_;  // the first results' ids
};

}  // namespace sluice::patterns
