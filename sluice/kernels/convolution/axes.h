// The spatial dimensions of a convolution, in the form that loops over them need. Internal to this room.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

struct Axis {
  size_t in = 1, out = 1, kernel = 1;
  int64_t stride = 1, padding = 0, dilation = 1;

  // Returns the place in x of a place in y and one in the window; `in` or more if it is outside.
  size_t place(size_t o, size_t k) const {
    return static_cast<size_t>(static_cast<int64_t>(o) * stride + static_cast<int64_t>(k) * dilation -
                               padding);
  }
};

// The first spatial dimension, the middle one of three, and the last one. A single dimension is the last one.
using Axes = std::array<Axis, 3>;

inline Axes axes_of(const stablehlo::ConvolutionCall& c) {
  Axes axes;
  const size_t spatial = c.stride.size();
  for (size_t d = 0; d < spatial; ++d)
    axes[d + 1 == spatial ? 2 : d] = {static_cast<size_t>(c.x[d + 2]),
                                      static_cast<size_t>(c.y[d + 2]),
                                      static_cast<size_t>(c.w[d + 2]),
                                      c.stride[d],
                                      c.padding[d],
                                      c.dilation[d]};
  return axes;
}

// A place of the window and one of y that meet at a place of x.
struct Source {
  size_t tap, out;
};
// [axis][place in x]
using Sources = std::array<std::vector<std::vector<Source>>, 3>;

inline Sources sources_of(const Axes& axes) {
  Sources sources;
  for (size_t d = 0; d < axes.size(); ++d) {
    sources[d].resize(axes[d].in);
    for (size_t o = 0; o < axes[d].out; ++o)
      for (size_t k = 0; k < axes[d].kernel; ++k)
        if (const size_t i = axes[d].place(o, k); i < axes[d].in) sources[d][i].push_back({k, o});
  }
  return sources;
}

}  // namespace sluice::kernels
