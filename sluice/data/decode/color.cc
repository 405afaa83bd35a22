#include "sluice/data/decode/color.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace sluice::data {
namespace {

using Levels = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::int64_t, 256>;

std::int64_t colors(const Pixels& pixels) { return std::min<std::int64_t>(pixels.channels, 3); }

// Pillow's blend, in float as there.
inline std::uint8_t blend(int other, int own, float factor) {
  const float level = static_cast<float>(other) + factor * static_cast<float>(own - other);
  return static_cast<std::uint8_t>(std::clamp(level, 0.0F, 255.0F));
}

template <typename Function>
Levels levels_by(const Function& function) {
  Levels levels;
  for (int level = 0; level < 256; ++level)
    levels[static_cast<std::size_t>(level)] = static_cast<std::uint8_t>(function(level));
  return levels;
}

// The first channel by the first table, and so on.
void look_up(Pixels& pixels, const std::array<Levels, 3>& tables) {
  const std::size_t step = static_cast<std::size_t>(pixels.channels);
  const auto count = static_cast<std::size_t>(colors(pixels));
  for (std::size_t c = 0; c < count; ++c) {
    const Levels& table = tables[c];
    for (std::size_t i = c; i < pixels.bytes.size(); i += step) pixels.bytes[i] = table[pixels.bytes[i]];
  }
}

void look_up(Pixels& pixels, const Levels& table) { look_up(pixels, {table, table, table}); }

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

// The mean of the image's greys, rounded.
int mean_grey(const Pixels& pixels) {
  const std::uint8_t* in = pixels.bytes.data();
  const std::int64_t area = pixels.height * pixels.width;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < area; ++i, in += pixels.channels)
    sum += pixels.channels == 1 ? in[0] : luma(in[0], in[1], in[2]);
  return static_cast<int>(static_cast<double>(sum) / static_cast<double>(area) + 0.5);
}

}  // namespace

void adjust_brightness(Pixels& pixels, double factor) {
  look_up(pixels, levels_by([&](int level) { return blend(0, level, static_cast<float>(factor)); }));
}

void adjust_contrast(Pixels& pixels, double factor) {
  if (pixels.bytes.empty()) return;
  const int mean = mean_grey(pixels);
  look_up(pixels, levels_by([&](int level) { return blend(mean, level, static_cast<float>(factor)); }));
}

void adjust_saturation(Pixels& pixels, double factor) {
  if (pixels.channels == 1) return;
  const auto share = static_cast<float>(factor);
  std::uint8_t* pixel = pixels.bytes.data();
  for (std::int64_t left = pixels.height * pixels.width; left > 0; --left, pixel += pixels.channels) {
    const std::uint8_t grey = luma(pixel[0], pixel[1], pixel[2]);
    for (int c = 0; c < 3; ++c) pixel[c] = blend(grey, pixel[c], share);
  }
}

void adjust_sharpness(Pixels& pixels, double factor) {
  if (pixels.height < 3 || pixels.width < 3) return;
  const auto share = static_cast<float>(factor);
  const std::int64_t step = pixels.channels, stride = pixels.width * step;
  // The weights of Pillow's SMOOTH are 1, and 5 in the middle, of 13. Its sums are floats, but none lies near
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
      row[i] = blend((2 * sum + 13) / 26, own[static_cast<std::size_t>(i)], share);
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
