// Which algorithm does a convolution. Internal to this room.
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

// For any kind but kBackward.
Algorithm choose_algorithm(const stablehlo::ConvolutionCall& c);

// Whether lines of planes are what is best copied to a matrix, where no other algorithm takes a convolution
// with the channels first: else runs of channels are.
bool has_long_lines(const stablehlo::ConvolutionCall& c);

}  // namespace sluice::kernels
