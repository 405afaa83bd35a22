// The names of the rows that support element types which most rows do not (see takes_complex and takes_float8
// in row.h), sorted.
#pragma once

#include <span>
#include <string_view>

namespace sluice::ops {

std::span<const std::string_view> names_of_complex_rows();
std::span<const std::string_view> names_of_float8_rows();

}  // namespace sluice::ops
