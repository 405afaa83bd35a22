// Convolutions of 3×3 by Winograd's minimal filtering (the formulas: winograd_tile.h): in a quarter of the
// multiplications with stride 1, in 81 of 144 with stride 2. Internal to this room.
//
// The multiplications are matrix products over the channels: with many channels by oneDNN or panel_product.h
// (winograd.cc), with few by loops of their own (winograd_narrow.cc). Errors are some ten times those of a
// direct sum in f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "sluice/base/result.h"
#include "sluice/kernels/convolution/winograd_transform.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// y [N, out, F] = x [N, in, C] * w [F, C, 3, 3], activations with the channels last. Rotated: of weights [C,
// F, 3, 3] that are rotated by 180 degrees, which makes a gradient of x from one of y; so does kDoubling,
// where y is the larger, without padding of its own (that of the convolution is 1).
struct WinogradShape {
  int64_t batch = 0, channels = 0, filters = 0;
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int64_t padding_height = 0, padding_width = 0;
  bool rotated = false;
  Tiling tiling = Tiling::kPlain;

  // Floats from one filter's or channel's kernel to the next one's, as the weights lie in memory.
  size_t filter_step() const { return 9 * static_cast<size_t>(rotated ? 1 : channels); }
  size_t channel_step() const { return 9 * static_cast<size_t>(rotated ? filters : 1); }
};

class Winograd {
 public:
  virtual ~Winograd() = default;
  // Under UseThreads. A convolution: (x, w) → y. A gradient: (x, y) → w.
  virtual base::Status run(const float* x, const float* other, float* result) const = 0;
};

// The convolution as Winograd's filtering takes it: 3×3 without groups and dilation, with stride 1, or with
// stride 2 and padding 1. Nothing for another. Any kind but kBackward.
std::optional<WinogradShape> winograd_shape(const stablehlo::ConvolutionCall& c);

// All where has_lanes8() (algorithm.h says when they are worth it). Null where the library wants the weights
// in an order that they are not transformed to.
std::unique_ptr<Winograd> make_winograd(const WinogradShape& shape);
// Of the weights (shape.rotated: false; not for kDoubling).
std::unique_ptr<Winograd> make_winograd_gradient(const WinogradShape& shape);

// The same for few channels and filters, multiples of kNarrowUnit: one unit of channels, or two for the
// gradient.
constexpr int64_t kNarrowUnit = 16;
std::unique_ptr<Winograd> make_narrow_winograd(const WinogradShape& shape);
std::unique_ptr<Winograd> make_narrow_winograd_gradient(const WinogradShape& shape);

}  // namespace sluice::kernels
