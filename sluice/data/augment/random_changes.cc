#include "sluice/data/augment/random_changes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sluice/data/augment/affine.h"
#include "sluice/data/augment/color.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

// Returns the magnitude-th of kMagnitudes numbers from `first` to `last`, as torch.linspace computes them: in
// float, from the nearer end, and rounded once.
double step_of(float first, float last, std::int64_t magnitude) {
  const double step = (last - first) / static_cast<float>(kMagnitudes - 1);
  if (magnitude < kMagnitudes / 2) return static_cast<float>(first + step * static_cast<double>(magnitude));
  return static_cast<float>(last - step * static_cast<double>(kMagnitudes - 1 - magnitude));
}

bool has_directions(ChangeKind kind) { return kind >= ChangeKind::kShearX && kind <= ChangeKind::kSharpness; }

base::Result<Pixels> moved(Pixels pixels, const AffineMap& map) {
  SLUICE_OK(claim_memory(pixels.bytes.size(), "an image that is moved"));
  Pixels result = move_pixels(pixels, map);
  keep_pixel_memory(std::move(pixels.bytes));
  return result;
}

}  // namespace

void jitter_colors(Pixels& pixels, const ColorJitter& jitter, base::Random& random) {
  const auto factor = [&](double x) { return random.uniform(std::max(0.0, 1 - x), 1 + x); };
  std::array<int, 4> order{0, 1, 2, 3};
  random.shuffle(order);
  // All are drawn, used or not: another strength of one leaves the others' draws unchanged.
  const double brightness = factor(jitter.brightness), contrast = factor(jitter.contrast),
               saturation = factor(jitter.saturation), hue = random.uniform(-jitter.hue, jitter.hue);
  for (const int change : order) {
    if (change == 0 && jitter.brightness > 0) adjust_brightness(pixels, brightness);
    if (change == 1 && jitter.contrast > 0) adjust_contrast(pixels, contrast);
    if (change == 2 && jitter.saturation > 0) adjust_saturation(pixels, saturation);
    if (change == 3 && jitter.hue > 0) adjust_hue(pixels, hue);
  }
}

double extent_of(ChangeKind kind, std::int64_t magnitude, std::int64_t height, std::int64_t width) {
  const auto share_of = [&](std::int64_t side) {
    return step_of(0, static_cast<float>(150.0 / 331.0 * static_cast<double>(side)), magnitude);
  };
  switch (kind) {
    case ChangeKind::kShearX:
    case ChangeKind::kShearY:
      return step_of(0, 0.3F, magnitude);
    case ChangeKind::kTranslateX:
      return share_of(width);
    case ChangeKind::kTranslateY:
      return share_of(height);
    case ChangeKind::kRotate:
      return step_of(0, 30, magnitude);
    case ChangeKind::kBrightness:
    case ChangeKind::kColor:
    case ChangeKind::kContrast:
    case ChangeKind::kSharpness:
      return step_of(0, 0.9F, magnitude);
    case ChangeKind::kPosterize:
      return 8 - std::round(static_cast<double>(magnitude) / 7.5);
    case ChangeKind::kSolarize:
      return step_of(255, 0, magnitude);
    case ChangeKind::kIdentity:
    case ChangeKind::kAutoContrast:
    case ChangeKind::kEqualize:
      break;
  }
  return 0;
}

base::Result<Pixels> change_image(Pixels pixels, ChangeKind kind, double extent) {
  const auto whole = static_cast<std::int64_t>(extent);
  switch (kind) {
    case ChangeKind::kShearX:
      return moved(std::move(pixels), shear_x(extent));
    case ChangeKind::kShearY:
      return moved(std::move(pixels), shear_y(extent));
    case ChangeKind::kTranslateX:
      return moved(std::move(pixels), shift(whole, 0));
    case ChangeKind::kTranslateY:
      return moved(std::move(pixels), shift(0, whole));
    case ChangeKind::kRotate: {
      const AffineMap map = rotation(extent, pixels.height, pixels.width);
      return moved(std::move(pixels), map);
    }
    case ChangeKind::kBrightness:
      adjust_brightness(pixels, 1 + extent);
      break;
    case ChangeKind::kColor:
      adjust_saturation(pixels, 1 + extent);
      break;
    case ChangeKind::kContrast:
      adjust_contrast(pixels, 1 + extent);
      break;
    case ChangeKind::kSharpness:
      adjust_sharpness(pixels, 1 + extent);
      break;
    case ChangeKind::kPosterize:
      posterize(pixels, static_cast<int>(whole));
      break;
    case ChangeKind::kSolarize:
      solarize(pixels, extent);
      break;
    case ChangeKind::kAutoContrast:
      autocontrast(pixels);
      break;
    case ChangeKind::kEqualize:
      equalize(pixels);
      break;
    case ChangeKind::kIdentity:
      break;
  }
  return pixels;
}

base::Result<Pixels> rand_augment(Pixels pixels, std::int64_t operations, std::int64_t magnitude,
                                  base::Random& random) {
  for (std::int64_t i = 0; i < operations; ++i) {
    const auto kind = static_cast<ChangeKind>(random.below(kChangeKinds));
    double extent = extent_of(kind, magnitude, pixels.height, pixels.width);
    if (has_directions(kind) && random.below(2) == 1) extent = -extent;
    SLUICE_TRY(pixels, change_image(std::move(pixels), kind, extent));
  }
  return pixels;
}

}  // namespace sluice::data
