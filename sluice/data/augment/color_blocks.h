// Loops over the colours of an image that compilers vectorise: over a constant number of pixels at a time, in
// 32-bit numbers, compiled once for AVX2 and once for every machine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "sluice/data/images/image.h"
#include "sluice/data/images/vectors.h"

#if defined(__GNUC__)
#define SLUICE_INLINE __attribute__((always_inline))
#else
#define SLUICE_INLINE
#endif

namespace sluice::data {

constexpr std::size_t kBlock = 64;  // pixels

struct ColorBlock {
  std::array<std::int32_t, kBlock> red, green, blue;
};

namespace color_blocks_detail {

// Processes one block. A pixel is read and written as four bytes; the fourth (alpha or the next red) stays.
template <bool kWrite, typename Body>
SLUICE_INLINE inline void one_block(std::uint8_t* pixels, std::size_t step, std::size_t count,
                                    const Body& body) {
  std::array<std::uint32_t, kBlock> words;
  for (std::size_t i = 0; i < kBlock; ++i) std::memcpy(&words[i], pixels + i * step, 4);
  ColorBlock block;
  for (std::size_t i = 0; i < kBlock; ++i) {
    block.red[i] = static_cast<std::int32_t>(words[i] & 255);
    block.green[i] = static_cast<std::int32_t>(words[i] >> 8 & 255);
    block.blue[i] = static_cast<std::int32_t>(words[i] >> 16 & 255);
  }
  body(block, count);
  if constexpr (!kWrite) return;
  for (std::size_t i = 0; i < kBlock; ++i)
    words[i] = (words[i] & 0xFF000000U) | static_cast<std::uint32_t>(block.red[i]) |
               static_cast<std::uint32_t>(block.green[i]) << 8 |
               static_cast<std::uint32_t>(block.blue[i]) << 16;
  for (std::size_t i = 0; i < kBlock; ++i) std::memcpy(pixels + i * step, &words[i], 4);
}

template <bool kWrite, typename Body>
SLUICE_INLINE inline void all_blocks(std::uint8_t* at, std::size_t step, std::size_t pixels,
                                     const Body& body) {
  for (; pixels > kBlock; pixels -= kBlock, at += kBlock * step) one_block<kWrite>(at, step, kBlock, body);
  std::array<std::uint8_t, 4 * kBlock + 4> last{};
  std::memcpy(last.data(), at, pixels * step);
  one_block<kWrite>(last.data(), step, pixels, body);
  if constexpr (kWrite) std::memcpy(at, last.data(), pixels * step);
}

#ifdef SLUICE_AVX2
template <bool kWrite, typename Body>
SLUICE_AVX2 void all_blocks_avx2(std::uint8_t* at, std::size_t step, std::size_t pixels, const Body& body) {
  all_blocks<kWrite>(at, step, pixels, body);
}
#endif

template <bool kWrite, typename Body>
void run(std::uint8_t* at, std::size_t step, std::size_t pixels, const Body& body) {
  if (pixels == 0) return;
#ifdef SLUICE_AVX2
  if (has_avx2()) return all_blocks_avx2<kWrite>(at, step, pixels, body);
#endif
  all_blocks<kWrite>(at, step, pixels, body);
}

}  // namespace color_blocks_detail

// Changes the colours of an RGB or RGBA image, as levels 0 … 255, by body(block, count); the last block has
// only `count` pixels. A lambda as body is marked SLUICE_INLINE.
template <typename Body>
void change_colors(Pixels& pixels, const Body& body) {
  color_blocks_detail::run<true>(pixels.bytes.data(), static_cast<std::size_t>(pixels.channels),
                                 static_cast<std::size_t>(pixels.height * pixels.width), body);
}

// Calls body(block, count) for the colours of an image without changing them.
template <typename Body>
void see_colors(const Pixels& pixels, const Body& body) {
  color_blocks_detail::run<false>(const_cast<std::uint8_t*>(pixels.bytes.data()),  // not written to
                                  static_cast<std::size_t>(pixels.channels),
                                  static_cast<std::size_t>(pixels.height * pixels.width), body);
}

}  // namespace sluice::data
