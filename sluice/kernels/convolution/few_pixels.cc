#include "sluice/kernels/convolution/few_pixels.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Convolution = stablehlo::ConvolutionCall;
using Kind = Convolution::Kind;

// The numbers of the matrix that a thread fills before it takes the next ones.
constexpr size_t kNumbersOfPart = 32 << 10;

// Returns the number of the window's tap that connects two pixels, or the number of taps if none does.
size_t tap_between(const Convolution& c, size_t x_pixel, size_t y_pixel) {
  auto x = static_cast<int64_t>(x_pixel), y = static_cast<int64_t>(y_pixel);
  int64_t tap = 0, step = 1;
  for (size_t d = c.stride.size(); d-- > 0;) {
    const int64_t in = c.x[d + 2], out = c.y[d + 2], window = c.w[d + 2];
    const int64_t distance = x % in + c.padding[d] - y % out * c.stride[d];
    if (distance < 0 || distance % c.dilation[d] != 0 || distance / c.dilation[d] >= window)
      return spatial_size(c.w);
    tap += distance / c.dilation[d] * step;
    step *= window, x /= in, y /= out;
  }
  return static_cast<size_t>(tap);
}

class FewPixels : public ConvolutionKernel {
 public:
  explicit FewPixels(const Convolution& c)
      : kind_(c.kind),
        channels_(static_cast<size_t>(c.w[1])),
        filters_(static_cast<size_t>(c.w[0])),
        x_pixels_(spatial_size(c.x)),
        y_pixels_(spatial_size(c.y)),
        taps_(spatial_size(c.w)),
        gemm_(find_gemm(few_pixels_gemm(c))),
        blocks_of_(taps_) {
    for (size_t y = 0; y < y_pixels_; ++y)
      for (size_t x = 0; x < x_pixels_; ++x) {
        const size_t tap = tap_between(c, x, y);
        (tap == taps_ ? zeros_ : blocks_of_[tap]).push_back(y * x_pixels_ + x);
      }
  }

  base::Status run(const ConvolutionTensors& at) const override {
    auto* const w = static_cast<float*>(at.w);
    const Scratch matrix(x_pixels_ * y_pixels_ * channels_ * filters_ * sizeof(float));
    if (kind_ == Kind::kWeights) {
      SLUICE_OK(gemm_->run(at.y, at.x, matrix.data()));
      add_blocks(matrix.floats(), w);
      return {};
    }
    fill_matrix(w, matrix.floats());
    return kind_ == Kind::kForward ? gemm_->run(at.x, matrix.data(), at.y)
                                   : gemm_->run(at.y, matrix.data(), at.x);
  }

 private:
  // Returns the offset of a block's row for the first filter.
  size_t offset(size_t block) const {
    return (block / x_pixels_ * filters_ * x_pixels_ + block % x_pixels_) * channels_;
  }

  // Calls body(filter) for all filters, on the threads of a call.
  template <typename Body>
  void for_filters(const Body& body) const {
    const size_t part = std::max(size_t{1}, kNumbersOfPart / (x_pixels_ * y_pixels_ * channels_));
    parallel_for((filters_ + part - 1) / part, [&](size_t i) {
      for (size_t filter = i * part; filter < std::min(filters_, (i + 1) * part); ++filter) body(filter);
    });
  }

  void fill_matrix(const float* w, float* matrix) const {
    for_filters([&](size_t filter) {
      float* const rows = matrix + filter * x_pixels_ * channels_;
      const float* const from = w + filter * channels_ * taps_;
      const size_t bytes = channels_ * sizeof(float);
      for (size_t tap = 0; tap < taps_; ++tap) {
        const std::vector<size_t>& blocks = blocks_of_[tap];
        if (blocks.empty()) continue;
        float* const first = rows + offset(blocks[0]);
        for (size_t i = 0; i < channels_; ++i) first[i] = from[i * taps_ + tap];
        for (size_t i = 1; i < blocks.size(); ++i) std::memcpy(rows + offset(blocks[i]), first, bytes);
      }
      for (const size_t block : zeros_) std::memset(rows + offset(block), 0, bytes);
    });
  }

  void add_blocks(float* matrix, float* w) const {
    const bool idle =
        std::any_of(blocks_of_.begin(), blocks_of_.end(), [](const auto& b) { return b.empty(); });
    for_filters([&](size_t filter) {
      float* const rows = matrix + filter * x_pixels_ * channels_;
      float* const to = w + filter * channels_ * taps_;
      if (idle) std::memset(to, 0, channels_ * taps_ * sizeof(float));
      for (size_t tap = 0; tap < taps_; ++tap) {
        const std::vector<size_t>& blocks = blocks_of_[tap];
        if (blocks.empty()) continue;
        float* const sum = rows + offset(blocks[0]);
        for (size_t i = 1; i < blocks.size(); ++i) add_floats(sum, rows + offset(blocks[i]), channels_);
        for (size_t i = 0; i < channels_; ++i) to[i * taps_ + tap] = sum[i];
      }
    });
  }

  Kind kind_;
  size_t channels_, filters_, x_pixels_, y_pixels_, taps_;
  const Gemm* gemm_;
  // Blocks are numbered y's pixel * x_pixels_ + x's pixel: the blocks that each tap connects, and the
  // blocks of zeros.
  std::vector<std::vector<size_t>> blocks_of_;
  std::vector<size_t> zeros_;
};

}  // namespace

size_t spatial_size(const stablehlo::Dims& dims) {
  return static_cast<size_t>(std::accumulate(dims.begin() + 2, dims.end(), int64_t{1}, std::multiplies<>()));
}

size_t unconnected_pixels(const Convolution& c) {
  size_t count = 0;
  for (size_t y = 0; y < spatial_size(c.y); ++y)
    for (size_t x = 0; x < spatial_size(c.x); ++x) count += tap_between(c, x, y) == spatial_size(c.w) ? 1 : 0;
  return count;
}

stablehlo::ProductCall few_pixels_gemm(const Convolution& c) {
  const auto in = static_cast<int64_t>(spatial_size(c.x)) * c.w[1],
             out = static_cast<int64_t>(spatial_size(c.y)) * c.w[0], images = c.x[0];
  if (c.kind == Kind::kForward) return {.m = images, .k = in, .n = out, .transposed_b = true};
  if (c.kind == Kind::kData) return {.m = images, .k = out, .n = in};
  return {.m = out, .k = images, .n = in, .transposed_a = true};
}

std::unique_ptr<ConvolutionKernel> make_few_pixels(const Convolution& c) {
  return std::make_unique<FewPixels>(c);
}

}  // namespace sluice::kernels
