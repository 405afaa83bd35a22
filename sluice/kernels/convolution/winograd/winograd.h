// Convolutions of 3×3 by Winograd's minimal filtering (the formulas: winograd_transform.h): with a quarter of
// the multiplications for stride 1, and 81 of 144 for stride 2. Internal to this room.
//
// The multiplications are matrix products over the channels: with many channels by oneDNN or gemm_panels.h
// (winograd.cc), with few by loops of their own (winograd_narrow.cc). Errors are some ten times the errors of
// a direct sum in f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "sluice/base/result.h"
#include "sluice/kernels/convolution/winograd/transform.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// y [N, out, F] = x [N, in, C] * w [F, C, 3, 3], activations with the channels last. Rotated: with weights
// [C, F, 3, 3] rotated by 180 degrees, which makes a gradient of x from one of y. kDoubling does so too;
// there y is the larger one and has no padding of its own (the convolution's padding is 1).
struct WinogradShape {
  int64_t batch = 0, channels = 0, filters = 0;
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int64_t padding_height = 0, padding_width = 0;
  bool rotated = false;
  Tiling tiling = Tiling::kPlain;

  // The floats from one filter's or channel's kernel to the next, as the weights are in memory.
  size_t filter_step() const { return 9 * static_cast<size_t>(rotated ? 1 : channels); }
  size_t channel_step() const { return 9 * static_cast<size_t>(rotated ? filters : 1); }
};

class Winograd {
 public:
  virtual ~Winograd() = default;
  // Runs under UseThreads. A convolution: (x, w) → y. A gradient: (x, y) → w.
  virtual base::Status run(const float* x, const float* other, float* result) const = 0;
};

// Returns the shape if Winograd's filtering supports the convolution: 3×3 without groups and dilation, with
// stride 1, or with stride 2 and padding 1. Else nothing. Any kind but kBackward.
std::optional<WinogradShape> winograd_shape(const stablehlo::ConvolutionCall& c);

// All makers need has_lanes8() (algorithm.cc decides when they are worth it). Makes the convolution; null if
// the library wants the weights in an order that the transform cannot write.
std::unique_ptr<Winograd> make_winograd(const WinogradShape& shape);
// Makes the weights' gradient (shape.rotated must be false; not for kDoubling).
std::unique_ptr<Winograd> make_winograd_gradient(const WinogradShape& shape);

// Make kernels for few channels and filters, multiples of kNarrowUnit: one unit of channels, or two for the
// gradient.
constexpr int64_t kNarrowUnit = 16;
std::unique_ptr<Winograd> make_narrow_winograd(const WinogradShape& shape);
std::unique_ptr<Winograd> make_narrow_winograd_gradient(const WinogradShape& shape);

}  // namespace sluice::kernels
