// What a profile tells of a call of a kernel (kernel_library.h).
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/stablehlo/type.h"

namespace sluice::stablehlo {

// The attribute of every call that says as what it was recorded: a number that Builder::set_location was
// given. Where it is not there, nothing is missing.
inline constexpr std::string_view kRecordedAttribute = "recorded";

// A call as a program's text or its handler has it.
struct KernelCall {
  std::string_view target;
  std::vector<Dims> operands, results;
  // The numbers of an attribute (one of an i64); empty where there is none.
  std::function<Dims(std::string_view name)> attribute;
};

// Multiplications and additions of the products and convolutions in the call, as their formulas have them
// (two for each step of a sum): Winograd's algorithm needs fewer, and what attention computes again for its
// gradient does not count. Nothing for calls that are element-wise or sum up, for recurrent layers over
// sequences of different lengths, and for a target that is not known.
std::optional<double> flops_of(const KernelCall& call);

}  // namespace sluice::stablehlo
