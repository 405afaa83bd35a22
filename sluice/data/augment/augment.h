// Augmentation: the changes of a sample's images between decoding and the batch.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/base/random.h"
#include "sluice/base/result.h"
#include "sluice/data/augment/random_changes.h"
#include "sluice/data/images/image.h"

namespace sluice::data {

// One step of the augmentation.
struct Transform {
  enum class Kind {
    kResize,
    kCenterCrop,
    kRandomCrop,
    kFlip,
    kRandomResizedCrop,
    kColorJitter,
    kAutoContrast,
    kRandAugment
  } kind;
  std::int64_t size = 0, padding = 0;
  // for kRandomResizedCrop: the part's share of the image's area, and its width ÷ height
  double scale_low = 0.08, scale_high = 1, ratio_low = 3.0 / 4, ratio_high = 4.0 / 3;
  ColorJitter jitter = {};                     // for kColorJitter
  double probability = 0;                      // for kAutoContrast
  std::int64_t operations = 0, magnitude = 0;  // for kRandAugment
};

// Draws a part as torchvision's RandomResizedCrop does: the share of the area is uniform, the ratio uniform
// in its logarithm, and every position equally likely. After ten draws that do not fit, it is the largest
// part in the middle whose ratio is allowed.
Region random_resized_region(std::int64_t height, std::int64_t width, const Transform& transform,
                             base::Random& random);

// Decodes an image, rotates it upright if `exif_rotation` is set, and applies the transforms in their order.
// If a RandomResizedCrop comes first, it reads only its part of a JPEG.
base::Result<Pixels> decode_augmented(std::string_view bytes, ColorModel model,
                                      const std::vector<Transform>& transforms, base::Random random,
                                      bool exif_rotation = false);

}  // namespace sluice::data
