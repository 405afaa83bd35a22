#include "sluice/data/decode/planes.h"

#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define SLUICE_SSSE3 __attribute__((target("ssse3")))
#include <immintrin.h>
#endif

namespace sluice::data {
namespace {

template <typename T>
void split_from(const T* in, std::int64_t from, std::int64_t area, std::int64_t channels, T* out) {
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t i = from; i < area; ++i) out[c * area + i] = in[i * channels + c];
}

#ifdef SLUICE_SSSE3
// Converts 16 RGB pixels at a time: each of the three registers has some of each channel. Returns the first
// pixel that is left.
SLUICE_SSSE3 std::int64_t split_rgb(const std::uint8_t* in, std::int64_t area, std::uint8_t* out) {
  constexpr char x = -1;
  const __m128i pick[3][3] = {{_mm_setr_epi8(0, 3, 6, 9, 12, 15, x, x, x, x, x, x, x, x, x, x),
                               _mm_setr_epi8(x, x, x, x, x, x, 2, 5, 8, 11, 14, x, x, x, x, x),
                               _mm_setr_epi8(x, x, x, x, x, x, x, x, x, x, x, 1, 4, 7, 10, 13)},
                              {_mm_setr_epi8(1, 4, 7, 10, 13, x, x, x, x, x, x, x, x, x, x, x),
                               _mm_setr_epi8(x, x, x, x, x, 0, 3, 6, 9, 12, 15, x, x, x, x, x),
                               _mm_setr_epi8(x, x, x, x, x, x, x, x, x, x, x, 2, 5, 8, 11, 14)},
                              {_mm_setr_epi8(2, 5, 8, 11, 14, x, x, x, x, x, x, x, x, x, x, x),
                               _mm_setr_epi8(x, x, x, x, x, 1, 4, 7, 10, 13, x, x, x, x, x, x),
                               _mm_setr_epi8(x, x, x, x, x, x, x, x, x, x, 0, 3, 6, 9, 12, 15)}};
  std::int64_t i = 0;
  for (; i + 16 <= area; i += 16) {
    const auto* from = reinterpret_cast<const __m128i*>(in + 3 * i);
    const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1), c = _mm_loadu_si128(from + 2);
    for (int channel = 0; channel < 3; ++channel) {
      const __m128i* mask = pick[channel];
      const __m128i plane =
          _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(a, mask[0]), _mm_shuffle_epi8(b, mask[1])),
                       _mm_shuffle_epi8(c, mask[2]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + channel * area + i), plane);
    }
  }
  return i;
}
#endif

}  // namespace

void split_planes(const std::uint8_t* in, std::int64_t area, std::int64_t channels, std::uint8_t* out) {
  std::int64_t done = 0;
  if (channels == 1) {
    if (area > 0) std::memcpy(out, in, static_cast<std::size_t>(area));
    return;
  }
#ifdef SLUICE_SSSE3
  static const bool has_ssse3 = __builtin_cpu_supports("ssse3") > 0;
  if (channels == 3 && has_ssse3) done = split_rgb(in, area, out);
#endif
  split_from(in, done, area, channels, out);
}

void split_planes(const float* in, std::int64_t area, std::int64_t channels, float* out) {
  split_from(in, 0, area, channels, out);
}

}  // namespace sluice::data
