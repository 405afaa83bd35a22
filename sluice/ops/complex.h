// Which rows take complex numbers (see takes_complex in row.h).
#pragma once

#include <span>
#include <string_view>

namespace sluice::ops {

// Their names, sorted.
std::span<const std::string_view> names_of_complex_rows();

}  // namespace sluice::ops
