// The figures that a profile shows for a call of a kernel (kernel_library.h).
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/stablehlo/type.h"

namespace sluice::stablehlo {

// The attribute of a call that says which operation it was recorded as: a number that Builder::set_location
// was given. A call may lack it.
inline constexpr std::string_view kRecordedAttribute = "recorded";

// A call, as a program's text or its handler describes it.
struct KernelCall {
  std::string_view target;
  std::vector<Dims> operands, results;
  // Returns the numbers of an attribute (one number for an i64); empty if the call does not have it.
  std::function<Dims(std::string_view name)> attribute;
};

// Returns the number of multiplications and additions of the products and convolutions in the call, by their
// formulas (two for each step of a sum): Winograd's algorithm needs fewer, and values that attention computes
// again for its gradient do not count. Returns nothing for calls that are element-wise or sums, for recurrent
// layers over sequences of different lengths, and for an unknown target.
std::optional<double> flops_of(const KernelCall& call);

}  // namespace sluice::stablehlo
