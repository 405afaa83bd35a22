#include "sluice/data/augment/color.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "sluice/data/augment/color_blocks.h"

namespace sluice::data {
namespace {

using Levels = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::int64_t, 256>;

std::int64_t colors(const Pixels& pixels) { return std::min<std::int64_t>(pixels.channels, 3); }

// Computes Pillow's blend, in float as Pillow does.
inline std::int32_t blend(std::int32_t other, std::int32_t own, float factor) {
  const float level = static_cast<float>(other) + factor * static_cast<float>(own - other);
  return static_cast<std::int32_t>(std::min(std::max(level, 0.0F), 255.0F));
}

// Blends the image's colours with another image's colours, which `other` computes from each.
template <typename Other>
void blend_colors(Pixels& pixels, double factor, const Other& other) {
  const auto share = static_cast<float>(factor);
  change_colors(pixels, [&other, share](ColorBlock& block, std::size_t) SLUICE_INLINE {
    for (std::size_t i = 0; i < kBlock; ++i) {
      const std::int32_t level = other(block.red[i], block.green[i], block.blue[i]);
      block.red[i] = blend(level, block.red[i], share);
      block.green[i] = blend(level, block.green[i], share);
      block.blue[i] = blend(level, block.blue[i], share);
    }
  });
}

template <typename Function>
Levels levels_by(const Function& function) {
  Levels levels;
  for (int level = 0; level < 256; ++level)
    levels[static_cast<std::size_t>(level)] = static_cast<std::uint8_t>(function(level));
  return levels;
}

// Maps the first channel by the first table, and so on.
void look_up(Pixels& pixels, const std::array<Levels, 3>& tables) {
  const std::size_t step = static_cast<std::size_t>(pixels.channels);
  const auto count = static_cast<std::size_t>(colors(pixels));
  for (std::size_t c = 0; c < count; ++c) {
    const Levels& table = tables[c];
    for (std::size_t i = c; i < pixels.bytes.size(); i += step) pixels.bytes[i] = table[pixels.bytes[i]];
  }
}

void look_up(Pixels& pixels, const Levels& table) { look_up(pixels, {table, table, table}); }

// Blends the image with an image of one level.
void blend_with(Pixels& pixels, double factor, int level) {
  if (pixels.channels == 1)
    look_up(pixels, levels_by([&](int own) { return blend(level, own, static_cast<float>(factor)); }));
  else
    blend_colors(pixels, factor,
                 [level](std::int32_t, std::int32_t, std::int32_t) SLUICE_INLINE { return level; });
}

Histogram histogram(const Pixels& pixels, std::int64_t channel) {
  Histogram counts{};
  for (std::size_t i = static_cast<std::size_t>(channel); i < pixels.bytes.size();
       i += static_cast<std::size_t>(pixels.channels))
    ++counts[pixels.bytes[i]];
  return counts;
}

template <typename Function>
void by_histograms(Pixels& pixels, const Function& levels_of) {
  std::array<Levels, 3> tables{};
  for (std::int64_t c = 0; c < colors(pixels); ++c)
    tables[static_cast<std::size_t>(c)] = levels_of(histogram(pixels, c));
  look_up(pixels, tables);
}

Levels stretched(const Histogram& counts) {
  int low = 0, high = 255;
  while (low < 255 && counts[static_cast<std::size_t>(low)] == 0) ++low;
  while (high > 0 && counts[static_cast<std::size_t>(high)] == 0) --high;
  if (high <= low) return levels_by([](int level) { return level; });
  const double scale = 255.0 / (high - low), offset = -low * scale;
  return levels_by([&](int level) { return std::clamp(static_cast<int>(level * scale + offset), 0, 255); });
}

Levels equalized(const Histogram& counts) {
  std::int64_t pixels = 0, last = 0;
  for (const std::int64_t count : counts) {
    pixels += count;
    if (count > 0) last = count;
  }
  const std::int64_t step = (pixels - last) / 255;
  if (step == 0) return levels_by([](int level) { return level; });
  std::int64_t below = step / 2;
  return levels_by([&](int level) {
    const std::int64_t equal = std::exchange(below, below + counts[static_cast<std::size_t>(level)]) / step;
    return std::min<std::int64_t>(equal, 255);
  });
}

// Returns the mean of the image's greys, rounded.
int mean_grey(const Pixels& pixels) {
  const std::int64_t area = pixels.height * pixels.width;
  std::int64_t sum = 0;
  if (pixels.channels == 1) {
    sum = std::accumulate(pixels.bytes.begin(), pixels.bytes.end(), sum);
  } else {
    see_colors(pixels, [&sum](const ColorBlock& block, std::size_t count) SLUICE_INLINE {
      std::array<std::int32_t, kBlock> greys;
      for (std::size_t i = 0; i < kBlock; ++i) greys[i] = luma(block.red[i], block.green[i], block.blue[i]);
      std::int32_t of_block = 0;
      for (std::size_t i = 0; i < kBlock; ++i) of_block += i < count ? greys[i] : 0;
      sum += of_block;
    });
  }
  return static_cast<int>(static_cast<double>(sum) / static_cast<double>(area) + 0.5);
}

}  // namespace

void adjust_brightness(Pixels& pixels, double factor) { blend_with(pixels, factor, 0); }

void adjust_contrast(Pixels& pixels, double factor) {
  if (!pixels.bytes.empty()) blend_with(pixels, factor, mean_grey(pixels));
}

void adjust_saturation(Pixels& pixels, double factor) {
  if (pixels.channels == 1) return;
  blend_colors(pixels, factor, [](std::int32_t red, std::int32_t green, std::int32_t blue) SLUICE_INLINE {
    return static_cast<std::int32_t>(luma(red, green, blue));
  });
}

void adjust_sharpness(Pixels& pixels, double factor) {
  if (pixels.height < 3 || pixels.width < 3) return;
  const auto share = static_cast<float>(factor);
  const std::int64_t step = pixels.channels, stride = pixels.width * step;
  // The weights of Pillow's SMOOTH are 1, and 5 in the middle, of 13. Its sums are floats, but no sum is near
  // a half. The image's edge stays.
  std::vector<std::uint8_t> above(pixels.bytes.begin(), pixels.bytes.begin() + stride), own(above.size());
  for (std::int64_t y = 1; y < pixels.height - 1; ++y) {
    std::uint8_t* const row = pixels.bytes.data() + y * stride;
    const std::uint8_t* const below = row + stride;
    std::memcpy(own.data(), row, own.size());
    for (std::int64_t i = step; i < stride - step; ++i) {
      if (step == 4 && i % 4 == 3) continue;
      int sum = 4 * own[static_cast<std::size_t>(i)];
      for (std::int64_t near = i - step; near <= i + step; near += step)
        sum += above[static_cast<std::size_t>(near)] + own[static_cast<std::size_t>(near)] + below[near];
      row[i] = static_cast<std::uint8_t>(blend((2 * sum + 13) / 26, own[static_cast<std::size_t>(i)], share));
    }
    above.swap(own);
  }
}

void autocontrast(Pixels& pixels) { by_histograms(pixels, stretched); }

void equalize(Pixels& pixels) { by_histograms(pixels, equalized); }

void posterize(Pixels& pixels, int bits) {
  look_up(pixels, levels_by([&](int level) { return level & ~((1 << (8 - bits)) - 1); }));
}

void solarize(Pixels& pixels, double threshold) {
  look_up(pixels, levels_by([&](int level) { return level < threshold ? level : 255 - level; }));
}

}  // namespace sluice::data
