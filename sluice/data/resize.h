// Resizing and cropping of pixels.
#pragma once

#include "sluice/data/image.h"

namespace sluice::data {

// Bilinear with antialiasing: each new pixel is the mean of the old ones under a triangle that is as wide as
// the reduction, first along rows, then along columns, in 8 bits between; the same numbers as Pillow's
// BILINEAR.
Pixels resize_bilinear(const Pixels& pixels, std::int64_t height, std::int64_t width);

// The part that begins at (top, left), which may lie outside: what is not in the picture is zero. With
// `mirrored`, the part is turned left to right.
Pixels crop_pixels(const Pixels& pixels, std::int64_t top, std::int64_t left, std::int64_t height,
                   std::int64_t width, bool mirrored = false);

}  // namespace sluice::data
