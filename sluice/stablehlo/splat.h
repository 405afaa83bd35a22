// The one number that all elements of a constant have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sluice/base/text/number.h"
#include "sluice/stablehlo/operation.h"

namespace sluice::stablehlo {

// Returns the number that all elements of a constant have, as the program's text has it: "0.0", "-3", "true".
// Returns a text that is not a number, or "", for other constants, and "" for other operations.
inline std::string splat_text(const Operation& op) {
  if (!op.is("stablehlo.constant")) return "";
  const std::string text = op.attributes.text();
  constexpr std::string_view kDense = "dense<";
  const size_t dense = text.find(kDense);
  if (dense == std::string::npos) return "";
  const size_t begin = dense + kDense.size();
  return text.substr(begin, text.find('>', begin) - begin);
}

// Returns the integer that all elements of a constant of integers have; nothing for another operation.
inline std::optional<int64_t> integer_of(const Operation& op) {
  if (!op.is("stablehlo.constant") || !is_integer(op.results[0].dtype())) return std::nullopt;
  return base::number_of<int64_t>(splat_text(op));
}

}  // namespace sluice::stablehlo
