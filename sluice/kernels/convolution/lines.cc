#include "sluice/kernels/convolution/lines.h"

#include "sluice/kernels/lanes.h"

namespace sluice::kernels {
namespace {

// Every second one of a and b, behind each other.
SLUICE_INLINE void every_second(const Lanes8& a, const Lanes8& b, Lanes8& even, Lanes8& odd) {
  even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
  odd = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}
SLUICE_INLINE void every_second(const Lanes16& a, const Lanes16& b, Lanes16& even, Lanes16& odd) {
  even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  odd = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}
SLUICE_INLINE void in_turns(const Lanes8& even, const Lanes8& odd, Lanes8& a, Lanes8& b) {
  a = __builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11);
  b = __builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15);
}
SLUICE_INLINE void in_turns(const Lanes16& even, const Lanes16& odd, Lanes16& a, Lanes16& b) {
  a = __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  b = __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

template <typename L>
SLUICE_INLINE void split_pairs_by(const float* from, size_t count, size_t readable, float* even, float* odd) {
  size_t i = 0;
  for (; i < count && i + 2 * kFloatsOf<L> <= readable; i += 2 * kFloatsOf<L>) {
    L a, b, evens, odds;
    load(from + i, a);
    load(from + i + kFloatsOf<L>, b);
    every_second(a, b, evens, odds);
    store(evens, even + i / 2);
    store(odds, odd + i / 2);
  }
  for (; i < count; ++i) (i % 2 == 0 ? even : odd)[i / 2] = from[i];
  const L zeros = {};
  for (size_t j = 0; j < kFloatsOf<Lanes16>; j += kFloatsOf<L>) {
    store(zeros, even + (count + 1) / 2 + j);
    store(zeros, odd + count / 2 + j);
  }
}

template <typename L>
SLUICE_INLINE void join_pairs_by(const float* even, const float* odd, size_t count, size_t room, float* to) {
  size_t i = 0;
  for (; i < count && i + 2 * kFloatsOf<L> <= room; i += 2 * kFloatsOf<L>) {
    L evens, odds, a, b;
    load(even + i / 2, evens);
    load(odd + i / 2, odds);
    in_turns(evens, odds, a, b);
    store(a, to + i);
    store(b, to + i + kFloatsOf<L>);
  }
  for (; i < count; ++i) to[i] = (i % 2 == 0 ? even : odd)[i / 2];
}

}  // namespace

SLUICE_EACH_CPU
void copy_apart(const float* from, size_t step, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = from[i * step];
}

SLUICE_EACH_CPU
void add_apart(const float* from, size_t count, size_t step, float* to) {
  for (size_t i = 0; i < count; ++i) to[i * step] += from[i];
}

SLUICE_BY_LANES(split_pairs, (const float* from, size_t count, size_t readable, float* even, float* odd),
                (from, count, readable, even, odd))
SLUICE_BY_LANES(join_pairs, (const float* even, const float* odd, size_t count, size_t room, float* to),
                (even, odd, count, room, to))

}  // namespace sluice::kernels
