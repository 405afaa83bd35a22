// The plain loops, and for x86 with AVX2 the same sums eight at a time. They use whole numbers, so all
// results are equal.
#include "sluice/data/images/resize_rows.h"

#include <algorithm>
#include <cstring>

#include "sluice/data/images/vectors.h"

#ifdef SLUICE_AVX2
#include <immintrin.h>
#endif

namespace sluice::data {
namespace {

constexpr std::int32_t kHalf = 1 << (kResizeBits - 1);

std::uint8_t rounded_pixel(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kResizeBits, 0, 255));
}

void row_plain(const std::uint8_t* row, std::int64_t channels, const ResizeWindows& windows,
               std::uint8_t* out) {
  for (std::size_t i = 0; i < windows.first.size(); ++i) {
    const std::int32_t* weights = windows.of(i);
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::uint8_t* in = row + windows.first[i] * channels + c;
      std::int32_t sum = kHalf;
      for (std::int64_t k = 0; k < windows.count[i]; ++k) sum += in[k * channels] * weights[k];
      *out++ = rounded_pixel(sum);
    }
  }
}

// Computes one new row of `bytes`, from byte `from` on; old rows are `stride` apart.
void column_plain(const std::uint8_t* in, std::size_t stride, const std::int32_t* weights, std::int64_t count,
                  std::size_t from, std::size_t bytes, std::uint8_t* out) {
  for (std::size_t i = from; i < bytes; ++i) {
    std::int32_t sum = kHalf;
    for (std::int64_t k = 0; k < count; ++k) sum += in[static_cast<std::size_t>(k) * stride + i] * weights[k];
    out[i] = rounded_pixel(sum);
  }
}

#ifdef SLUICE_AVX2

// Splits each weight into its upper bits and its lower 15, because the instruction that multiplies and adds
// takes 16-bit numbers. A pair of taps becomes 4 times (lower, lower), then 4 times (upper, upper).
std::vector<std::int16_t> split_weights(const ResizeWindows& windows) {
  std::vector<std::int16_t> split(windows.weights.size() * 8);
  std::int16_t* out = split.data();
  for (std::size_t i = 0; i < windows.weights.size(); i += 2, out += 16) {
    const std::int32_t a = windows.weights[i], b = windows.weights[i + 1];
    for (int repeat = 0; repeat < 8; repeat += 2) {
      out[repeat] = static_cast<std::int16_t>(a & 0x7fff);
      out[repeat + 1] = static_cast<std::int16_t>(b & 0x7fff);
      out[repeat + 8] = static_cast<std::int16_t>(a >> 15);
      out[repeat + 9] = static_cast<std::int16_t>(b >> 15);
    }
  }
  return split;
}

// Computes one new pixel of two rows of RGB, one in each half of the registers: bytes r g b –.
SLUICE_AVX2 inline __m256i rgb_window(const std::uint8_t* row0, const std::uint8_t* row1,
                                      const std::int16_t* split, std::int64_t taps) {
  // The pattern turns the bytes of two pixels into (r r, g g, b b, –) as 16-bit numbers.
  const __m256i pairs =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
  __m256i lower = _mm256_set1_epi32(kHalf), upper = _mm256_setzero_si256();
  for (std::int64_t k = 0; k < taps; k += 2, split += 16, row0 += 6, row1 += 6) {
    const __m128i first = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row0));
    const __m128i second = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row1));
    const __m256i pixels =
        _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1), pairs);
    const __m128i* weights = reinterpret_cast<const __m128i*>(split);
    const __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128(weights));
    const __m256i high = _mm256_broadcastsi128_si256(_mm_loadu_si128(weights + 1));
    lower = _mm256_add_epi32(lower, _mm256_madd_epi16(pixels, low));
    upper = _mm256_add_epi32(upper, _mm256_madd_epi16(pixels, high));
  }
  const __m256i sum = _mm256_srai_epi32(_mm256_add_epi32(lower, _mm256_slli_epi32(upper, 15)), kResizeBits);
  const __m256i words = _mm256_packs_epi32(sum, sum);
  return _mm256_packus_epi16(words, words);
}

// Computes two rows. Reads up to 8 bytes after a window's pixels. A pixel is written as four bytes, and the
// next one replaces the fourth; the last pixel is written as three.
SLUICE_AVX2 void two_rgb_rows(const std::uint8_t* row0, const std::uint8_t* row1,
                              const ResizeWindows& windows, const std::int16_t* split, std::uint8_t* out0,
                              std::uint8_t* out1) {
  const std::size_t count = windows.first.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t offset = windows.first[i] * 3;
    const __m256i bytes = rgb_window(row0 + offset, row1 + offset, split, windows.taps);
    split += windows.taps * 8;
    const int pixel0 = _mm_cvtsi128_si32(_mm256_castsi256_si128(bytes));
    const int pixel1 = _mm_cvtsi128_si32(_mm256_extracti128_si256(bytes, 1));
    if (i + 1 < count) {
      std::memcpy(out0 + 3 * i, &pixel0, 4);
      std::memcpy(out1 + 3 * i, &pixel1, 4);
    } else {
      std::memcpy(out0 + 3 * i, &pixel0, 3);
      std::memcpy(out1 + 3 * i, &pixel1, 3);
    }
  }
}

void rgb_rows(const PixelView& in, const ResizeWindows& windows, std::uint8_t* out) {
  const auto split = split_weights(windows);
  const auto in_bytes = static_cast<std::size_t>(in.width) * 3, out_bytes = windows.first.size() * 3;
  const std::size_t behind = static_cast<std::size_t>(windows.taps) * 3 + 8;
  std::vector<std::uint8_t> last[2];
  // Returns a row with readable bytes after its end: rows at the end of the memory are copied.
  const auto row = [&](std::int64_t y, std::vector<std::uint8_t>& copy) {
    const std::uint8_t* bytes = in.data + y * in.stride;
    if (static_cast<std::size_t>((in.height - 1 - y) * in.stride) >= behind) return bytes;
    copy.assign(in_bytes + behind, 0);
    std::memcpy(copy.data(), bytes, in_bytes);
    return static_cast<const std::uint8_t*>(copy.data());
  };
  for (std::int64_t y = 0; y < in.height; y += 2) {
    const std::int64_t second = std::min(y + 1, in.height - 1);
    const std::uint8_t* first = row(y, last[0]);
    two_rgb_rows(first, second == y ? first : row(second, last[1]), windows, split.data(),
                 out + static_cast<std::size_t>(y) * out_bytes,
                 out + static_cast<std::size_t>(second) * out_bytes);
  }
}

// Computes 16 columns at a time; returns the first byte that is left.
SLUICE_AVX2 std::size_t column_wide(const std::uint8_t* in, std::size_t stride, const std::int32_t* weights,
                                    std::int64_t count, std::size_t size, std::uint8_t* out) {
  std::size_t i = 0;
  for (; i + 16 <= size; i += 16) {
    __m256i a = _mm256_set1_epi32(kHalf), b = a;
    const std::uint8_t* at = in + i;
    for (std::int64_t k = 0; k < count; ++k, at += stride) {
      const __m256i weight = _mm256_set1_epi32(weights[k]);
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
      a = _mm256_add_epi32(a, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(bytes), weight));
      b = _mm256_add_epi32(b, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)), weight));
    }
    const __m256i words =  // 0–3 8–11 | 4–7 12–15, put in order
        _mm256_permute4x64_epi64(
            _mm256_packs_epi32(_mm256_srai_epi32(a, kResizeBits), _mm256_srai_epi32(b, kResizeBits)), 0xD8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
  return i;
}

#endif

}  // namespace

void resize_along_rows(const PixelView& in, const ResizeWindows& windows, std::uint8_t* out) {
#ifdef SLUICE_AVX2
  if (in.channels == 3 && has_avx2()) return rgb_rows(in, windows, out);
#endif
  for (std::int64_t y = 0; y < in.height; ++y)
    row_plain(in.data + y * in.stride, in.channels, windows,
              out + static_cast<std::size_t>(y * in.channels) * windows.first.size());
}

void resize_along_columns(const PixelView& in, const ResizeWindows& windows, std::uint8_t* out) {
  const auto stride = static_cast<std::size_t>(in.stride);
  const auto bytes = static_cast<std::size_t>(in.width * in.channels);
  for (std::size_t i = 0; i < windows.first.size(); ++i, out += bytes) {
    const std::uint8_t* first = in.data + windows.first[i] * in.stride;
    std::size_t done = 0;
#ifdef SLUICE_AVX2
    if (has_avx2()) done = column_wide(first, stride, windows.of(i), windows.count[i], bytes, out);
#endif
    column_plain(first, stride, windows.of(i), windows.count[i], done, bytes, out);
  }
}

}  // namespace sluice::data
