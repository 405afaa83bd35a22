#include "sluice/patterns/moves/constants.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace sluice::patterns {

using stablehlo::Operation;

std::optional<int64_t> integer_of(const Operation& op) {
  if (!op.is("stablehlo.constant") || !stablehlo::is_integer(op.results[0].dtype())) return {};
  const std::string text = op.attributes.text();
  const size_t at = text.find("dense<");
  if (at == std::string::npos) return {};
  int64_t number = 0;
  const char* const begin = text.data() + at + 6;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  if (error != std::errc() || *end != '>') return {};
  return number;
}

bool is_zeros(const stablehlo::Rewriter& r, stablehlo::Value v) {
  const Operation* const constant = r.made_by(v, "stablehlo.constant");
  if (constant == nullptr) return false;
  const std::string text = constant->attributes.text();
  return text.find("dense<0.0>") != std::string::npos || text.find("dense<0>") != std::string::npos;
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
