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

}  // namespace

SLUICE_EACH_CPU
void copy_apart(const float* from, size_t step, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = from[i * step];
}

SLUICE_EACH_CPU
void fill(float number, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = number;
}

SLUICE_EACH_CPU
void add(float number, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] += number;
}

SLUICE_EACH_CPU
void add_apart(const float* from, size_t count, size_t step, float* to) {
  for (size_t i = 0; i < count; ++i) to[i * step] += from[i];
}

SLUICE_BY_LANES(split_pairs, (const float* from, size_t count, size_t readable, float* even, float* odd),
                (from, count, readable, even, odd))

}  // namespace sluice::kernels
