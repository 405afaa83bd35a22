// Moving an image's pixels.
#pragma once

#include <array>

#include "sluice/data/images/image.h"

namespace sluice::data {

// A map from a position in the new image to one in the old image: (a·x + b·y + c, d·x + e·y + f).
using AffineMap = std::array<double, 6>;

// Returns an image of the same size by nearest neighbours, zero for positions outside; the pixels of Pillow's
// transform(AFFINE, NEAREST).
Pixels move_pixels(const PixelView& pixels, const AffineMap& map);

// The maps of torchvision's RandAugment. Shears move by a share of the distance from the upper or left edge,
// shifts by whole pixels to the right and down; rotations are counterclockwise around the middle, in degrees.
AffineMap shear_x(double share);
AffineMap shear_y(double share);
AffineMap shift(std::int64_t right, std::int64_t down);
AffineMap rotation(double degrees, std::int64_t height, std::int64_t width);

}  // namespace sluice::data
