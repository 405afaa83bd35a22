// Which of attention's probabilities are kept where some are dropped: what the operation's definition and its
// kernels have in common, so that they decide alike.
//
// Each query of each head has two random words, its seeds. What becomes of a key follows from them and from
// the key's place, so both passes find the same without a matrix of it in memory.
//
// With the attribute `dropout` the composites (composites.h) and the calls of kernels (kernel_library.h) have
// two more operands, the last: the seeds [2, batch, heads, queries], of u32, for kernels as f32 of the same
// bits, and the probability p that a key is dropped, without dimensions. What is kept is divided by 1 - p.
#pragma once

#include <cmath>
#include <cstdint>

namespace sluice::stablehlo {

// A place is multiplied by 2^32 divided by the golden ratio, so that neighbours lie far apart.
inline constexpr uint32_t kKeyFactor = 0x9e3779b9;

// place * kKeyFactor + first seed → 32 random bits, of which the high ones are the better. The two rounds of
// lowbias32 (C. Wellons, Prospecting for hash functions, 2018), without its last shift. The second seed comes
// between them: queries whose first seeds lie beside each other have nothing in common. Word: 32-bit numbers
// without a sign, one, several or those of a program.
template <typename Word>
[[gnu::always_inline]] inline void take_bits(Word& word, const Word& second_seed) {
  word ^= word >> 16;
  word *= uint32_t{0x7feb352d};
  word ^= word >> 15;
  word ^= second_seed;
  word *= uint32_t{0x846ca68b};
}

// A key is kept if its bits without the low 8 are a number below this: ceil((1 - p) 2^24).
inline constexpr uint32_t kLowBits = 8;
inline constexpr float kDecisions = 16777216;
inline uint32_t kept_below(float p) { return static_cast<uint32_t>(std::ceil((1 - p) * kDecisions)); }

}  // namespace sluice::stablehlo
