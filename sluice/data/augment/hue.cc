// Conversion to HSV and back with the numbers of Pillow's conversions. Pillow computes in float and double by
// turns; only floats give the same, for each colour (augment_oracle) and for each hue, saturation and value.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "sluice/data/augment/color.h"
#include "sluice/data/augment/color_blocks.h"

namespace sluice::data {
namespace {

// Selects without a branch, which would prevent vectorisation of the loop.
SLUICE_INLINE inline std::int32_t select(bool condition, std::int32_t yes, std::int32_t no) {
  return no ^ ((yes ^ no) & -static_cast<std::int32_t>(condition));
}

// Returns the hue in 1/255 of the circle; for a grey it may be any.
SLUICE_INLINE inline std::int32_t hue_of(std::int32_t r, std::int32_t g, std::int32_t b, std::int32_t highest,
                                         std::int32_t range) {
  const bool is_red = r == highest, is_green = g == highest;
  // The two channels that are not the highest: the next one after it on the circle, and the other one.
  const std::int32_t after = select(is_red, g, select(is_green, b, r)),
                     before = select(is_red, b, select(is_green, r, g));
  const std::int32_t direction = select(after >= before, 1, -1);
  // `sixth` is where the highest channel and the next one are equal, in sixths of the circle. The hue is
  // between it and the highest channel's own hue.
  const std::int32_t sixth = select(is_red, 0, select(is_green, 2, 4)) + direction;
  const float middle =
      static_cast<float>(highest - std::max(after, before)) / static_cast<float>(std::max(range, 1));
  const float sixths = static_cast<float>(sixth) - static_cast<float>(direction) * middle;
  const float turns = sixths / 6.0F + static_cast<float>(select(sixth < 0, 1, 0));
  return static_cast<std::int32_t>(turns * 255.0F);
}

// Returns a level that is this share, in `units`, of v · saturation below v.
SLUICE_INLINE inline std::int32_t below(std::int32_t v, std::int32_t saturation, std::int32_t share,
                                        float units) {
  return v - static_cast<std::int32_t>(static_cast<float>(v * saturation * share) * (1 / units) + 0.5F);
}

}  // namespace

void adjust_hue(Pixels& pixels, double turn) {
  if (pixels.channels == 1) return;
  const int steps = static_cast<int>(turn * 255) & 255;
  change_colors(pixels, [steps](ColorBlock& block, std::size_t) SLUICE_INLINE {
    for (std::size_t i = 0; i < kBlock; ++i) {
      const std::int32_t r = block.red[i], g = block.green[i], b = block.blue[i];
      const std::int32_t v = std::max(std::max(r, g), b), range = v - std::min(std::min(r, g), b);
      const std::int32_t hue = (hue_of(r, g, b, v, range) + steps) & 255;
      const auto saturation =
          static_cast<std::int32_t>(static_cast<float>(range) / static_cast<float>(std::max(v, 1)) * 255.0F);
      const std::int32_t sixth = hue * 6 / 255, part = hue * 6 - sixth * 255;
      const std::int32_t lowest = below(v, saturation, 1, 255);
      const std::int32_t between = below(v, saturation, select((sixth & 1) == 1, part, 255 - part), 65025);
      // A channel is lowest opposite to its own colour, and between next to that.
      const auto level = [=](std::int32_t from_own) SLUICE_INLINE {
        const std::int32_t from_opposite = std::abs(2 * from_own - 5);
        return select(from_opposite == 1, lowest, select(from_opposite == 3, between, v));
      };
      block.red[i] = level(sixth);
      block.green[i] = level(select(sixth < 2, sixth + 4, sixth - 2));
      block.blue[i] = level(select(sixth < 4, sixth + 2, sixth - 4));
    }
  });
}

}  // namespace sluice::data
