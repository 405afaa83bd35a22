// Chooses the algorithm for a convolution. Internal to this room.
#pragma once

#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

enum class Algorithm {
  kPointwise,        // pointwise.h
  kFewPixels,        // few_pixels.h
  kNarrowWinograd,   // winograd.h
  kWinograd,         // winograd.h
  kDirect,           // direct.h
  kPlanes,           // planes.h
  kDepthwisePlanes,  // depthwise_planes.h
};

// Chooses for any kind but kBackward.
Algorithm choose_algorithm(const stablehlo::ConvolutionCall& c);

// Returns whether copying lines of planes to a matrix is faster than copying runs of channels, if no other
// algorithm supports a convolution with the channels first.
bool has_long_lines(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
