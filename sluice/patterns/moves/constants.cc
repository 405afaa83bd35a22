#include "sluice/patterns/moves/constants.h"

#include <algorithm>
#include <string>

#include "sluice/stablehlo/splat.h"

namespace sluice::patterns {

using stablehlo::Operation;

bool is_zeros(const stablehlo::Rewriter& r, stablehlo::Value v) {
  const Operation* const constant = r.made_by(v, "stablehlo.constant");
  if (constant == nullptr) return false;
  const std::string number = stablehlo::splat_text(*constant);
  return number == "0.0" || number == "0";
}

bool pads_with_zeros(const stablehlo::Rewriter& r, const Operation& op) {
  if (!op.is("stablehlo.pad")) return false;
  const auto holds = [&](std::string_view list, const auto& test) {
    const stablehlo::Dims numbers = op.attributes.list(list);
    return std::all_of(numbers.begin(), numbers.end(), test);
  };
  const auto adds = [](int64_t edge) { return edge >= 0; };
  return holds("interior_padding", [](int64_t gap) { return gap == 0; }) && holds("edge_padding_low", adds) &&
         holds("edge_padding_high", adds) && is_zeros(r, op.operands[1]);
}

}  // namespace sluice::patterns
