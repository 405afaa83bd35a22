// Which convolutions share their activations with no other layer. Internal to this room.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

// What an activation passes through element by element lies in memory as it does. A convolution is lone where
// all its activations come from main's parameters, and go to main's results and to sums, through nothing but
// that: no layer gains from another order of their dimensions than that in which they come and go.
class LoneConvolutions {
 public:
  // Looks at the composites; passes do not change what it found.
  explicit LoneConvolutions(const stablehlo::Rewriter& r);
  // A convolution's composite, or a reduction of an activation of a lone one.
  bool has(const stablehlo::Operation& op) const {
    return !op.results.empty() && found_.contains(op.results.front().id());
  }

 private:
  std::unordered_set<int32_t> found_;  // the first results' ids
};

}  // namespace sluice::patterns
