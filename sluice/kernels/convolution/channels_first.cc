#include "sluice/kernels/convolution/channels_first.h"

#include <algorithm>
#include <utility>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/convolution/few_pixels.h"
#include "sluice/kernels/convolution/lines.h"
#include "sluice/kernels/convolution/parts.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Convolution = stablehlo::ConvolutionCall;
using Kind = Convolution::Kind;

constexpr size_t kTile = 8;

// Transposes eight rows of eight; rows are `step` floats apart.
SLUICE_FOR_LANES8
void transpose_tile(const float* from, size_t from_step, float* to, size_t to_step) {
  Lanes8 rows[kTile], pairs[kTile];
  for (size_t i = 0; i < kTile; ++i) load(from + i * from_step, rows[i]);
  for (size_t i = 0; i < kTile; i += 2) {
    pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(rows[i], rows[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (size_t i = 0; i < kTile; i += 4)
    for (size_t j = 0; j < 2; ++j) {
      rows[i + 2 * j] = __builtin_shufflevector(pairs[i + j], pairs[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      rows[i + 2 * j + 1] =
          __builtin_shufflevector(pairs[i + j], pairs[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (size_t i = 0; i < 4; ++i) {
    store(__builtin_shufflevector(rows[i], rows[i + 4], 0, 1, 2, 3, 8, 9, 10, 11), to + i * to_step);
    store(__builtin_shufflevector(rows[i], rows[i + 4], 4, 5, 6, 7, 12, 13, 14, 15), to + (i + 4) * to_step);
  }
}

// Computes to[j][i] = from[i][j] for `rows` rows of `columns`.
void transpose(const float* from, size_t from_step, size_t rows, size_t columns, float* to, size_t to_step) {
  const size_t whole_rows = has_lanes8() ? rows - rows % kTile : 0, whole = columns - columns % kTile;
  for (size_t i = 0; i < whole_rows; i += kTile)
    for (size_t j = 0; j < whole; j += kTile)
      transpose_tile(from + i * from_step + j, from_step, to + j * to_step + i, to_step);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = i < whole_rows ? whole : 0; j < columns; ++j)
      to[j * to_step + i] = from[i * from_step + j];
}

// An activation of one shape in both orders.
struct Activation {
  size_t images, channels, pixels;

  explicit Activation(const stablehlo::Dims& dims)
      : images(static_cast<size_t>(dims[0])),
        channels(static_cast<size_t>(dims[1])),
        pixels(spatial_size(dims)) {}
  size_t floats() const { return images * channels * pixels; }
  bool has_one_order() const { return channels == 1 || pixels == 1; }

  // Some pixels of all channels of an image.
  struct Part {
    size_t image, pixel, pixels;
  };
  template <typename Body>
  void each_part(const Body& body) const {
    const size_t some = std::max(kTile, kFloatsOfPart / channels / kTile * kTile);
    const size_t parts = (pixels + some - 1) / some;
    parallel_for(images * parts, [&](size_t i) {
      const size_t first = i % parts * some;
      body(Part{i / parts, first, std::min(some, pixels - first)});
    });
  }
  size_t first_of(const Part& part) const { return part.image * channels * pixels + part.pixel; }
  size_t last_of(const Part& part) const { return (part.image * pixels + part.pixel) * channels; }

  // Transposes [channels, pixels] to [pixels, channels].
  void bring_last(const float* from, float* to) const {
    each_part([&](const Part& part) {
      transpose(from + first_of(part), pixels, channels, part.pixels, to + last_of(part), channels);
    });
  }
  // Transposes back, unless both orders are the same in memory; then adds the bias, unless it is null.
  void bring_first(const float* from, const float* bias, float* to) const {
    if (has_one_order() && bias == nullptr) return;
    each_part([&](const Part& part) {
      float* const first = to + first_of(part);
      if (!has_one_order()) transpose(from + last_of(part), channels, part.pixels, channels, first, pixels);
      for (size_t channel = 0; bias != nullptr && channel < channels; ++channel)
        add(bias[channel], part.pixels, first + channel * pixels);
    });
  }
};

class ChannelsFirst : public ConvolutionKernel {
 public:
  ChannelsFirst(const Convolution& c, std::unique_ptr<ConvolutionKernel> kernel)
      : kind_(c.kind), x_(c.x), y_(c.y), kernel_(std::move(kernel)) {}

  base::Status run(const ConvolutionTensors& at) const override {
    float *x, *y;
    const ScratchArrays memory(
        {{x, x_.has_one_order() ? 0 : x_.floats()}, {y, y_.has_one_order() ? 0 : y_.floats()}});
    ConvolutionTensors here = at;
    if (!x_.has_one_order()) here.x = x;
    if (!y_.has_one_order()) here.y = y;
    if (here.x != at.x && kind_ != Kind::kData) x_.bring_last(static_cast<float*>(at.x), x);
    if (here.y != at.y && kind_ != Kind::kForward) y_.bring_last(static_cast<float*>(at.y), y);
    SLUICE_OK(kernel_->run(here));
    if (kind_ == Kind::kData) x_.bring_first(x, at.bias, static_cast<float*>(at.x));
    if (kind_ == Kind::kForward) y_.bring_first(y, at.bias, static_cast<float*>(at.y));
    return {};
  }

 private:
  Kind kind_;
  Activation x_, y_;
  std::unique_ptr<ConvolutionKernel> kernel_;
};

}  // namespace

std::unique_ptr<ConvolutionKernel> make_channels_first(const Convolution& c,
                                                       std::unique_ptr<ConvolutionKernel> kernel) {
  return kernel ? std::make_unique<ChannelsFirst>(c, std::move(kernel)) : nullptr;
}

}  // namespace sluice::kernels
