// Finds parts of a sequence that repeat many times in a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::patterns {

// symbols[i] == symbols[i + period] for begin <= i and i + period < end. Neither end can be moved outwards,
// and no shorter period holds.
struct Repeat {
  size_t begin = 0, end = 0, period = 0;
  size_t rounds() const { return (end - begin) / period; }
  bool operator==(const Repeat&) const = default;
};

// Finds all repeats of at least min_rounds rounds (2 or more), sorted by their period, then by their
// beginning. Takes time n log n.
std::vector<Repeat> find_repeats(std::span<const uint32_t> symbols, size_t min_rounds);

}  // namespace sluice::patterns
