// Matches a concatenation of more than 64 values, such as torch::stack of many tensors, or the arguments of a
// loop's rounds. Makes concatenations of 32 values, and one of their results; each is computed by itself
// (optimization_barrier). XLA's CPU compiler makes one kernel of a concatenation and of what its operands are
// made from. The time for such a kernel grows with the square of the operands: 0.3 s for 32, 3.2 s for 128
// and 10 s for 300 on a Zen 4 core, where 300 in groups take 1.1 s and 1,000 take 3 s.
#include <algorithm>

#include "sluice/patterns/table.h"

namespace sluice::patterns {
namespace {

constexpr size_t kMaxParts = 64, kGroup = 32;

using stablehlo::Operation;
using stablehlo::Value;
using stablehlo::Values;

// The compiler computes these itself.
bool are_constants(const Rewriter& r, const Operation& op) {
  return std::all_of(op.operands.begin(), op.operands.end(), [&](Value v) {
    return r.made_by(r.before_reshapes(v), "stablehlo.constant") != nullptr;
  });
}

}  // namespace

void wide_concatenates(Rewriter& r) {
  r.each([&](const Operation& op) -> Values {
    if (!op.is("stablehlo.concatenate") || op.operands.size() <= kMaxParts || are_constants(r, op)) return {};
    const int64_t dim = op.attributes.list("dimension").at(0);
    Values parts = op.operands;
    while (parts.size() > kGroup) {
      Values joined;
      for (size_t i = 0; i < parts.size(); i += kGroup) {
        const auto group = std::span(parts).subspan(i, std::min(kGroup, parts.size() - i));
        joined.push_back(r.b.optimization_barrier(r.b.concatenate(group, dim)));
      }
      parts = std::move(joined);
    }
    return {r.b.concatenate(parts, dim)};
  });
}

}  // namespace sluice::patterns
