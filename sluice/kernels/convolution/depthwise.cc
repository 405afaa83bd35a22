// With the channels last, each step of the window is a sum over vectors of all channels.
#include "sluice/kernels/convolution/depthwise.h"

#include <algorithm>
#include <cstring>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/convolution/axes.h"
#include "sluice/kernels/convolution/few_pixels.h"
#include "sluice/kernels/each_cpu.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Convolution = stablehlo::ConvolutionCall;
using Kind = Convolution::Kind;

// Multiplications of a thread's part.
constexpr size_t kWorkOfPart = size_t{1} << 16;

SLUICE_EACH_CPU
void add_products(float* sum, const float* a, const float* b, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] += a[i] * b[i];
}

class Depthwise : public ConvolutionKernel {
 public:
  explicit Depthwise(const Convolution& c)
      : kind_(c.kind),
        axes_(axes_of(c)),
        images_(static_cast<size_t>(c.x[0])),
        channels_(static_cast<size_t>(c.w[0])),
        taps_(spatial_size(c.w)) {
    if (kind_ == Kind::kData) sources_ = sources_of(axes_);
  }

  base::Status run(const ConvolutionTensors& at) const override {
    auto *x = static_cast<float*>(at.x), *w = static_cast<float*>(at.w), *y = static_cast<float*>(at.y);
    const Scratch by_tap(taps_ * channels_ * sizeof(float));  // [taps, channels]
    if (kind_ == Kind::kWeights) {
      make_weights(x, y, by_tap.floats());
      transpose(by_tap.floats(), taps_, channels_, w);
      return {};
    }
    transpose(w, channels_, taps_, by_tap.floats());
    if (kind_ == Kind::kForward)
      each_pixel(y, &Axis::out, [&](size_t image, const Place& o, float* to) {
        add_window(x + image * pixels(&Axis::in) * channels_, o, by_tap.floats(), to);
      });
    else
      each_pixel(x, &Axis::in, [&](size_t image, const Place& i, float* to) {
        add_sources(y + image * pixels(&Axis::out) * channels_, i, by_tap.floats(), to);
      });
    return {};
  }

 private:
  using Extent = size_t Axis::*;
  using Place = std::array<size_t, 3>;

  size_t pixels(Extent extent) const { return axes_[0].*extent * axes_[1].*extent * axes_[2].*extent; }
  size_t pixel(const Place& place, Extent extent) const {
    return (place[0] * axes_[1].*extent + place[1]) * axes_[2].*extent + place[2];
  }

  static void transpose(const float* from, size_t rows, size_t columns, float* to) {
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
  }

  // Calls body(image, place, its channels' memory, zeros) for all pixels of x or of y.
  template <typename Body>
  void each_pixel(float* all, Extent extent, const Body& body) const {
    const size_t of_image = pixels(extent), plane = axes_[1].*extent * axes_[2].*extent;
    const size_t part = std::max(size_t{1}, kWorkOfPart / (taps_ * channels_));
    parallel_pieces(images_ * of_image, part, [&](size_t first, size_t count) {
      std::memset(all + first * channels_, 0, count * channels_ * sizeof(float));
      for (size_t i = first; i < first + count; ++i) {
        const size_t here = i % of_image, rest = here % plane;
        body(i / of_image, {here / plane, rest / (axes_[2].*extent), rest % (axes_[2].*extent)},
             all + i * channels_);
      }
    });
  }

  void add_window(const float* x, const Place& o, const float* w, float* to) const {
    for (size_t k0 = 0; k0 < axes_[0].kernel; ++k0) {
      const size_t i0 = axes_[0].place(o[0], k0);
      if (i0 >= axes_[0].in) continue;
      for (size_t k1 = 0; k1 < axes_[1].kernel; ++k1) {
        const size_t i1 = axes_[1].place(o[1], k1);
        if (i1 >= axes_[1].in) continue;
        const size_t tap = (k0 * axes_[1].kernel + k1) * axes_[2].kernel;
        for (size_t k2 = 0; k2 < axes_[2].kernel; ++k2) {
          const size_t i2 = axes_[2].place(o[2], k2);
          if (i2 >= axes_[2].in) continue;
          add_products(to, x + pixel({i0, i1, i2}, &Axis::in) * channels_, w + (tap + k2) * channels_,
                       channels_);
        }
      }
    }
  }

  void add_sources(const float* y, const Place& i, const float* w, float* to) const {
    for (const auto& [k0, o0] : sources_[0][i[0]])
      for (const auto& [k1, o1] : sources_[1][i[1]])
        for (const auto& [k2, o2] : sources_[2][i[2]]) {
          const size_t tap = (k0 * axes_[1].kernel + k1) * axes_[2].kernel + k2;
          add_products(to, y + pixel({o0, o1, o2}, &Axis::out) * channels_, w + tap * channels_, channels_);
        }
  }

  // Sums each line separately, so that small numbers are not lost in a long sum.
  void make_weights(const float* x, const float* y, float* w) const {
    std::memset(w, 0, taps_ * channels_ * sizeof(float));
    parallel_for(taps_, [&](size_t tap) {
      const Scratch line(channels_ * sizeof(float));
      const Place k = {tap / axes_[2].kernel / axes_[1].kernel, tap / axes_[2].kernel % axes_[1].kernel,
                       tap % axes_[2].kernel};
      for (size_t image = 0; image < images_; ++image)
        for (size_t o0 = 0; o0 < axes_[0].out; ++o0)
          for (size_t o1 = 0; o1 < axes_[1].out; ++o1) {
            const Place i = {axes_[0].place(o0, k[0]), axes_[1].place(o1, k[1]), 0};
            if (i[0] >= axes_[0].in || i[1] >= axes_[1].in) continue;
            std::memset(line.data(), 0, channels_ * sizeof(float));
            add_line(x + (image * pixels(&Axis::in) + pixel(i, &Axis::in)) * channels_,
                     y + (image * pixels(&Axis::out) + pixel({o0, o1, 0}, &Axis::out)) * channels_, k[2],
                     line.floats());
            add_floats(w + tap * channels_, line.floats(), channels_);
          }
    });
  }

  void add_line(const float* x, const float* y, size_t k2, float* sum) const {
    for (size_t o = 0; o < axes_[2].out; ++o)
      if (const size_t i = axes_[2].place(o, k2); i < axes_[2].in)
        add_products(sum, x + i * channels_, y + o * channels_, channels_);
  }

  Kind kind_;
  Axes axes_;
  size_t images_, channels_, taps_;
  Sources sources_;
};

}  // namespace

bool is_depthwise(const Convolution& c) { return c.w[1] == 1 && c.w[0] == c.groups && c.groups > 1; }

std::unique_ptr<ConvolutionKernel> make_depthwise(const Convolution& c) {
  return std::make_unique<Depthwise>(c);
}

}  // namespace sluice::kernels
