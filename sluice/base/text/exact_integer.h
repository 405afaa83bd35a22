// Whole numbers that pass through a double unchanged.
#pragma once

#include <cstdint>

namespace sluice::base {

// 2^53: a double holds each whole number from 0 to this one. TOML, JSON and command lines have numbers as
// doubles.
inline constexpr std::int64_t kMaxExactInteger = std::int64_t{1} << 53;

}  // namespace sluice::base
