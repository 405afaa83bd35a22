// Changes of images at random, with the distributions of torchvision's transforms of these names.
#pragma once

#include <cstdint>

#include "sluice/base/random.h"
#include "sluice/base/result.h"
#include "sluice/data/images/image.h"

namespace sluice::data {

// Factors are drawn from 1 − x … 1 + x, but not below 0; the hue's turn from −hue … hue. 0: not changed.
struct ColorJitter {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
};
// The four changes, in an order that is drawn too.
void jitter_colors(Pixels& pixels, const ColorJitter& jitter, base::Random& random);

// What RandAugment chooses from, in torchvision's order.
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

// How far each kind goes at a magnitude, 0 … kMagnitudes − 1: a share for shears, pixels for translations,
// degrees for rotations, what a factor differs from 1 by, bits for posterize, a level for solarize; 0 for the
// others.
double extent_of(ChangeKind kind, std::int64_t magnitude, std::int64_t height, std::int64_t width);

// Images that are moved claim memory for another one.
base::Result<Pixels> change_image(Pixels pixels, ChangeKind kind, double extent);

// So many operations one after the other, each of any kind; where a kind has two directions, one is drawn.
base::Result<Pixels> rand_augment(Pixels pixels, std::int64_t operations, std::int64_t magnitude,
                                  base::Random& random);

}  // namespace sluice::data
