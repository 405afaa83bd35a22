#include "sluice/data/images/png_filter.h"

#include <cstdlib>
#include <cstring>

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace sluice::data {
namespace {

std::uint8_t png_paeth(int left, int up, int corner) {
  const int a = std::abs(up - corner), b = std::abs(left - corner), c = std::abs(left + up - 2 * corner);
  return static_cast<std::uint8_t>(a <= b && a <= c ? left : b <= c ? up : corner);
}

void png_up(const std::uint8_t* raw, const std::uint8_t* above, std::uint8_t* row, std::size_t size) {
  std::size_t i = 0;
#ifdef __SSE2__
  for (; i + 16 <= size; i += 16) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(raw + i));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(above + i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(row + i), _mm_add_epi8(a, b));
  }
#endif
  for (; i < size; ++i) row[i] = static_cast<std::uint8_t>(raw[i] + above[i]);
}

void png_any(int filter, std::size_t pixel, const std::uint8_t* raw, const std::uint8_t* above,
             std::uint8_t* row, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    const int left = i < pixel ? 0 : row[i - pixel], corner = i < pixel ? 0 : above[i - pixel];
    const int guess = filter == 1   ? left
                      : filter == 3 ? (left + above[i]) / 2
                                    : png_paeth(left, above[i], corner);
    row[i] = static_cast<std::uint8_t>(raw[i] + guess);
  }
}

#ifdef __SSE2__
// A pixel of three bytes is read and written as four: the next pixel replaces the fourth.
__m128i png_load(const std::uint8_t* from) {
  int bits;
  std::memcpy(&bits, from, sizeof bits);
  return _mm_cvtsi32_si128(bits);
}

template <std::size_t kBytes>
void png_store(std::uint8_t* to, __m128i pixel, bool last) {
  const int bits = _mm_cvtsi128_si32(pixel);
  if (kBytes == 3 && last)
    std::memcpy(to, &bits, 3);
  else
    std::memcpy(to, &bits, 4);
}

struct SubFilter {
  static __m128i guess(__m128i left, __m128i, __m128i) { return left; }
};

struct AverageFilter {
  static __m128i guess(__m128i left, __m128i up, __m128i) {
    // pavgb rounds up: the rounding is subtracted again.
    const __m128i odd = _mm_and_si128(_mm_xor_si128(left, up), _mm_set1_epi8(1));
    return _mm_sub_epi8(_mm_avg_epu8(left, up), odd);
  }
};

struct PaethFilter {
  static __m128i wide(__m128i bytes) { return _mm_unpacklo_epi8(bytes, _mm_setzero_si128()); }
  static __m128i magnitude(__m128i x) { return _mm_max_epi16(x, _mm_sub_epi16(_mm_setzero_si128(), x)); }
  static __m128i choose(__m128i mask, __m128i yes, __m128i no) {
    return _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no));
  }
  static __m128i guess(__m128i left8, __m128i up8, __m128i corner8) {
    const __m128i left = wide(left8), up = wide(up8), corner = wide(corner8);
    const __m128i to_left = _mm_sub_epi16(up, corner), to_up = _mm_sub_epi16(left, corner);
    const __m128i a = magnitude(to_left), b = magnitude(to_up);
    const __m128i c = magnitude(_mm_add_epi16(to_left, to_up));
    const __m128i smallest = _mm_min_epi16(c, _mm_min_epi16(a, b));
    const __m128i nearest =
        choose(_mm_cmpeq_epi16(smallest, a), left, choose(_mm_cmpeq_epi16(smallest, b), up, corner));
    return _mm_packus_epi16(nearest, nearest);
  }
};

template <typename Filter, std::size_t kBytes>
void png_pixels(const std::uint8_t* raw, const std::uint8_t* above, std::uint8_t* row, std::size_t size) {
  __m128i left = _mm_setzero_si128(), corner = _mm_setzero_si128();
  for (std::size_t i = 0; i < size; i += kBytes) {
    const __m128i up = png_load(above + i);
    left = _mm_add_epi8(png_load(raw + i), Filter::guess(left, up, corner));
    corner = up;
    png_store<kBytes>(row + i, left, i + kBytes == size);
  }
}

// Undoes Paeth with SSE4.1's instructions. The pixel to the left stays in 16 bits, because the next pixel
// waits for every step of its computation.
template <std::size_t kBytes>
__attribute__((target("sse4.1"))) void png_paeth_pixels(const std::uint8_t* raw, const std::uint8_t* above,
                                                        std::uint8_t* row, std::size_t size) {
  const __m128i bytes = _mm_set1_epi16(255);
  __m128i left = _mm_setzero_si128(), corner = _mm_setzero_si128();
  for (std::size_t i = 0; i < size; i += kBytes) {
    const __m128i up = _mm_cvtepu8_epi16(png_load(above + i));
    const __m128i to_left = _mm_sub_epi16(up, corner), to_up = _mm_sub_epi16(left, corner);
    const __m128i a = _mm_abs_epi16(to_left), b = _mm_abs_epi16(to_up);
    const __m128i c = _mm_abs_epi16(_mm_add_epi16(to_left, to_up));
    const __m128i smallest = _mm_min_epi16(c, _mm_min_epi16(a, b));
    const __m128i up_or_corner = _mm_blendv_epi8(corner, up, _mm_cmpeq_epi16(smallest, b));
    const __m128i nearest = _mm_blendv_epi8(up_or_corner, left, _mm_cmpeq_epi16(smallest, a));
    left = _mm_and_si128(_mm_add_epi16(_mm_cvtepu8_epi16(png_load(raw + i)), nearest), bytes);
    corner = up;
    png_store<kBytes>(row + i, _mm_packus_epi16(left, left), i + kBytes == size);
  }
}

template <std::size_t kBytes>
void png_by_pixel(int filter, const std::uint8_t* raw, const std::uint8_t* above, std::uint8_t* row,
                  std::size_t size) {
  static const bool has_sse41 = __builtin_cpu_supports("sse4.1") > 0;
  if (filter == 1) return png_pixels<SubFilter, kBytes>(raw, above, row, size);
  if (filter == 3) return png_pixels<AverageFilter, kBytes>(raw, above, row, size);
  if (has_sse41) return png_paeth_pixels<kBytes>(raw, above, row, size);
  png_pixels<PaethFilter, kBytes>(raw, above, row, size);
}
#endif

}  // namespace

bool png_unfilter(int filter, std::size_t pixel, const std::uint8_t* raw, const std::uint8_t* above,
                  std::uint8_t* row, std::size_t size) {
  if (filter < 0 || filter > 4) return false;
  if (filter == 0) {
    std::memcpy(row, raw, size);
  } else if (filter == 2) {
    png_up(raw, above, row, size);
#ifdef __SSE2__
  } else if (pixel == 3) {
    png_by_pixel<3>(filter, raw, above, row, size);
  } else if (pixel == 4) {
    png_by_pixel<4>(filter, raw, above, row, size);
#endif
  } else {
    png_any(filter, pixel, raw, above, row, size);
  }
  return true;
}

}  // namespace sluice::data
