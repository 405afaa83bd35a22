// A pseudo-random order of the numbers 0 … n − 1, drawn from a key, with access to any place.
#pragma once

#include <bit>
#include <cstdint>

#include "sluice/base/random.h"

namespace sluice::text {

// Returns the number at a place. Four rounds of a Feistel network permute the numbers below a power of four;
// a result outside of the range goes through them again until it is inside. So the order of billions of
// numbers needs no memory. `place` is below `numbers`, which is at least 1.
inline std::uint64_t permuted(std::uint64_t place, std::uint64_t numbers, std::uint64_t seed,
                              std::uint64_t epoch) {
  const int half = (std::bit_width(numbers - 1) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t high = place >> half, low = place & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t mixed = high ^ (base::key({seed, epoch, round, low}) & mask);
      high = low;
      low = mixed;
    }
    place = high << half | low;
  } while (place >= numbers);
  return place;
}

}  // namespace sluice::text
