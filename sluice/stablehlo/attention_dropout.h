// Decides which of attention's probabilities dropout keeps. The operation's definition and its kernels share
// this code, so that they decide alike.
//
// Each query of each head has two random words, its seeds. The decision about a key follows from them and
// from the key's place, so both passes decide alike without a matrix of decisions in memory.
//
// If their attribute `dropout` is set, the composites (composites.h) and the calls of kernels
// (kernel_library.h) have two more operands, the last ones: the seeds [2, batch, heads, queries], of u32 (for
// kernels as f32 with the same bits), and the probability p that a key is dropped, without dimensions. Kept
// probabilities are divided by 1 - p.
#pragma once

#include <cmath>
#include <cstdint>

namespace sluice::stablehlo {

// A key's place is multiplied by 2^32 divided by the golden ratio, so that neighbours become distant.
inline constexpr uint32_t kKeyFactor = 0x9e3779b9;

// Turns place * kKeyFactor + first seed into 32 random bits; the high bits are the better ones. The rounds
// are the two of lowbias32 (C. Wellons, Prospecting for hash functions, 2018), without its last shift. The
// second seed is mixed in between them, so that queries with neighbouring first seeds have nothing in common.
// Word: unsigned 32-bit numbers, either one, several or a program's.
template <typename Word>
[[gnu::always_inline]] inline void take_bits(Word& word, const Word& second_seed) {
  word ^= word >> 16;
  word *= uint32_t{0x7feb352d};
  word ^= word >> 15;
  word ^= second_seed;
  word *= uint32_t{0x846ca68b};
}

// A key is kept if its bits without the low 8 are below this: ceil((1 - p) 2^24).
inline constexpr uint32_t kLowBits = 8;
inline constexpr float kDecisions = 16777216;
inline uint32_t kept_below(float p) { return static_cast<uint32_t>(std::ceil((1 - p) * kDecisions)); }

}  // namespace sluice::stablehlo
