// Moving an image's pixels.
#pragma once

#include <array>

#include "sluice/data/images/image.h"

namespace sluice::data {

// From a place in the new image to one in the old: (a·x + b·y + c, d·x + e·y + f).
using AffineMap = std::array<double, 6>;

// An image of the same size by nearest neighbours, zero where the place lies outside; the pixels of Pillow's
// transform(AFFINE, NEAREST).
Pixels move_pixels(const PixelView& pixels, const AffineMap& map);

// The maps of torchvision's RandAugment. Shears move by a share of the distance from the upper or left edge,
// shifts by whole pixels to the right and down; rotations are around the middle, in degrees against the
// clock.
AffineMap shear_x(double share);
AffineMap shear_y(double share);
AffineMap shift(std::int64_t right, std::int64_t down);
AffineMap rotation(double degrees, std::int64_t height, std::int64_t width);

}  // namespace sluice::data
