// Changes of an image's levels, in place. Each gives the pixels of the function of the same name in
// torchvision's transforms.functional on an image of Pillow, bit for bit. Images are grey, RGB or RGBA; alpha
// is unchanged.
#pragma once

#include "sluice/data/images/image.h"

namespace sluice::data {

// Blend the image with another one: factor 0 gives the other one, 1 the image; above 1 the change continues
// in the same direction. The others: black; the image's mean grey; its greys; the image smoothed (3×3).
void adjust_brightness(Pixels& pixels, double factor);
void adjust_contrast(Pixels& pixels, double factor);
void adjust_saturation(Pixels& pixels, double factor);
void adjust_sharpness(Pixels& pixels, double factor);

// Shifts the hues by this share of their circle, −0.5 … 0.5, in Pillow's HSV of 8 bits each. (So 0 gives the
// image's nearest colours in HSV, which are not always its own.)
void adjust_hue(Pixels& pixels, double turn);

void autocontrast(Pixels& pixels);                // each channel stretched to 0 … 255
void equalize(Pixels& pixels);                    // each channel's histogram made even
void posterize(Pixels& pixels, int bits);         // only the upper bits stay, 0 … 8
void solarize(Pixels& pixels, double threshold);  // levels from the threshold on are inverted

}  // namespace sluice::data
