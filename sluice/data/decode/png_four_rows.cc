// A filtered pixel waits for the one to its left. So that it need not be waited for all the time, four rows
// are undone side by side, each two pixels behind the one above it: all that the next row needs is there
// then.
#include <cstring>

#include "sluice/data/decode/png_filter.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define SLUICE_AVX2 __attribute__((target("avx2")))
#define SLUICE_AVX2_INLINE __attribute__((target("avx2"), always_inline)) inline
#include <immintrin.h>
#endif

namespace sluice::data {

#ifdef SLUICE_AVX2
namespace {

constexpr std::size_t kLag = 2;           // pixels, from row to row
constexpr std::size_t kDelay = 3 * kLag;  // of the fourth row
constexpr std::size_t kLeastPixels = 16;  // of a row that is worth it

int load_four(const std::uint8_t* from) {
  int bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

// One row in each 64 bits, a pixel's bytes in 16 bits each.
template <std::size_t kBytes>
class FourRows {
 public:
  SLUICE_AVX2_INLINE FourRows(const std::uint8_t* raw, const std::uint8_t* above, std::uint8_t* rows,
                              std::size_t size)
      : raw_(raw + 1), above_(above), rows_(rows), size_(size) {
    left_ = before_ = up_ = _mm256_setzero_si256();
    sub_ = with_filter(raw, 1);
    average_ = with_filter(raw, 3);
    paeth_ = with_filter(raw, 4);
    straight_ = with_filter(raw, 2);
  }

  SLUICE_AVX2_INLINE void run() {
    const std::size_t width = size_ / kBytes;
    std::size_t step = 0;
    for (; step <= kDelay; ++step) edge(step, width);
    for (; step + 1 < width; ++step) {
      const __m128i pixels = next(step, step);
      for (std::size_t r = 0; r < 4; ++r) put(pixels, r, step - kLag * r, false);
    }
    for (; step < width + kDelay; ++step) edge(step, width);
  }

 private:
  SLUICE_AVX2_INLINE __m256i with_filter(const std::uint8_t* raw, std::uint8_t filter) const {
    const auto lane = [&](std::size_t r) { return raw[r * (size_ + 1)] == filter ? -1LL : 0LL; };
    return _mm256_setr_epi64x(lane(0), lane(1), lane(2), lane(3));
  }

  SLUICE_AVX2_INLINE const std::uint8_t* raw_at(std::size_t row, std::size_t step) const {
    return raw_ + row * (size_ + 1) + step * kBytes - row * kLag * kBytes;
  }

  // The pixels of this step, of the fourth row in the highest 32 bits; `column` is the one of `above`.
  SLUICE_AVX2_INLINE __m128i next(std::size_t step, std::size_t column) {
    const __m128i raw4 = _mm_setr_epi32(load_four(raw_at(0, step)), load_four(raw_at(1, step)),
                                        load_four(raw_at(2, step)), load_four(raw_at(3, step)));
    const __m256i raw = _mm256_cvtepu8_epi16(raw4);
    const __m256i first =
        _mm256_castsi128_si256(_mm_cvtepu8_epi16(_mm_cvtsi32_si128(load_four(above_ + column * kBytes))));
    const __m256i corner = up_;
    up_ = _mm256_blend_epi32(_mm256_permute4x64_epi64(before_, 0x90), first, 0x03);
    const __m256i to_left = _mm256_sub_epi16(up_, corner), to_up = _mm256_sub_epi16(left_, corner);
    const __m256i a = _mm256_abs_epi16(to_left), b = _mm256_abs_epi16(to_up);
    const __m256i c = _mm256_abs_epi16(_mm256_add_epi16(to_left, to_up));
    const __m256i least = _mm256_min_epi16(c, _mm256_min_epi16(a, b));
    const __m256i up_or_corner = _mm256_blendv_epi8(corner, up_, _mm256_cmpeq_epi16(least, b));
    const __m256i nearest = _mm256_blendv_epi8(up_or_corner, left_, _mm256_cmpeq_epi16(least, a));
    const __m256i mean = _mm256_srli_epi16(_mm256_add_epi16(left_, up_), 1);
    const __m256i simple =
        _mm256_or_si256(_mm256_and_si256(straight_, up_),
                        _mm256_or_si256(_mm256_and_si256(sub_, left_), _mm256_and_si256(average_, mean)));
    const __m256i guess = _mm256_or_si256(simple, _mm256_and_si256(paeth_, nearest));
    before_ = left_;
    left_ = _mm256_and_si256(_mm256_add_epi16(raw, guess), _mm256_set1_epi16(255));
    return _mm_packus_epi16(_mm256_castsi256_si128(left_), _mm256_extracti128_si256(left_, 1));
  }

  // The pixels at the rows' ends, where some rows have not begun or are over.
  SLUICE_AVX2_INLINE void edge(std::size_t step, std::size_t width) {
    const auto begun = [&](std::size_t r) { return step > kLag * r ? -1LL : 0LL; };
    const __m256i mask = _mm256_setr_epi64x(begun(0), begun(1), begun(2), begun(3));
    left_ = _mm256_and_si256(left_, mask);
    up_ = _mm256_and_si256(up_, mask);
    const __m128i pixels = next(step, step < width ? step : width - 1);
    for (std::size_t r = 0; r < 4; ++r)
      if (step >= kLag * r && step - kLag * r < width)
        put(pixels, r, step - kLag * r, step - kLag * r + 1 == width);
  }

  // Three bytes are written as four: the fourth is replaced with the next pixel.
  SLUICE_AVX2_INLINE void put(__m128i pixels, std::size_t row, std::size_t column, bool last) {
    alignas(16) int each[4];
    _mm_store_si128(reinterpret_cast<__m128i*>(each), pixels);
    std::uint8_t* to = rows_ + row * size_ + column * kBytes;
    if (kBytes == 3 && last)
      std::memcpy(to, &each[row], 3);
    else
      std::memcpy(to, &each[row], 4);
  }

  const std::uint8_t *raw_, *above_;
  std::uint8_t* rows_;
  std::size_t size_;
  __m256i left_, before_;  // what the last step gave, and the one before it
  __m256i up_;             // of the last step: the corner of the next
  __m256i sub_, straight_, average_, paeth_;
};

// The object is the function's own, so that what it holds stays in registers.
template <std::size_t kBytes>
SLUICE_AVX2 void unfilter_four(const std::uint8_t* raw, const std::uint8_t* above, std::uint8_t* rows,
                               std::size_t size) {
  FourRows<kBytes>(raw, above, rows, size).run();
}

}  // namespace
#endif

bool png_unfilter_four([[maybe_unused]] std::size_t pixel, [[maybe_unused]] const std::uint8_t* raw,
                       [[maybe_unused]] const std::uint8_t* above, [[maybe_unused]] std::uint8_t* rows,
                       [[maybe_unused]] std::size_t size) {
#ifdef SLUICE_AVX2
  static const bool has_avx2 = __builtin_cpu_supports("avx2") > 0;
  if (!has_avx2 || (pixel != 3 && pixel != 4) || size < kLeastPixels * pixel) return false;
  int slow = 0;  // rows with Average or Paeth: the others are quick enough alone
  for (std::size_t r = 0; r < 4; ++r) {
    const std::uint8_t filter = raw[r * (size + 1)];
    if (filter > 4) return false;
    slow += filter >= 3 ? 1 : 0;
  }
  if (slow < 2) return false;
  if (pixel == 3)
    unfilter_four<3>(raw, above, rows, size);
  else
    unfilter_four<4>(raw, above, rows, size);
  return true;
#else
  return false;
#endif
}

}  // namespace sluice::data
