// The options of what happens to the pixels of an image.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct AugmentationSection {
  bool exif_rotation = false;
  int64_t resize = 0;  // pixels of the shorter side; 0: not resized
  int64_t crop = 0;    // side of a random crop in training, of a centre crop in the test; 0: none
  int64_t crop_padding = 4;
  // Mixes the images and the losses of neighbours in a batch: the alpha of the Beta distribution of their
  // shares; 0: off. With both, each row gets one of the two.
  double mixup = 0, cutmix = 0;
  // Side of RandomResizedCrop in training; the test's images are resized to 8/7 of it and cropped to their
  // centre. 0: none.
  int64_t random_resized_crop = 0;
  bool flip = false;
  // Changes to training images, after the steps above and in this order; see data/dataset.h.
  std::vector<double> color_jitter;   // brightness, contrast, saturation, hue; empty: none
  std::vector<int64_t> rand_augment;  // operations, magnitude; empty: none
  double auto_contrast = 0;           // share of the images
  std::vector<float> mean;            // of the channels, in 0…1; empty: 0.5 each
  std::vector<float> deviation;       // empty: 0.25 each
};

}  // namespace sluice::train

SLUICE_API_END
