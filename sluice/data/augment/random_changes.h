// Random changes of images, with the distributions of torchvision's transforms of the same names.
#pragma once

#include <cstdint>

#include "sluice/base/random.h"
#include "sluice/base/result.h"
#include "sluice/data/images/image.h"

namespace sluice::data {

// Factors are drawn from 1 − x … 1 + x, but not below 0; the shift of the hue from −hue … hue. 0: no change.
struct ColorJitter {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
};
// Applies the four changes, in a random order.
void jitter_colors(Pixels& pixels, const ColorJitter& jitter, base::Random& random);

// The kinds of changes that RandAugment chooses from, in torchvision's order.
enum class ChangeKind {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize
};
constexpr int kChangeKinds = static_cast<int>(ChangeKind::kEqualize) + 1;
constexpr std::int64_t kMagnitudes = 31;

// Returns the strength of a kind at a magnitude, 0 … kMagnitudes − 1: a share for shears, pixels for
// translations, degrees for rotations, a factor's difference from 1, bits for posterize, a level for
// solarize; 0 for the others.
double extent_of(ChangeKind kind, std::int64_t magnitude, std::int64_t height, std::int64_t width);

// Applies one change. Changes that move an image claim memory for another one.
base::Result<Pixels> change_image(Pixels pixels, ChangeKind kind, double extent);

// Applies `operations` changes in a row, each of any kind; if a kind has two directions, one is drawn.
base::Result<Pixels> rand_augment(Pixels pixels, std::int64_t operations, std::int64_t magnitude,
                                  base::Random& random);

}  // namespace sluice::data
