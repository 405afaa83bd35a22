// A plane of x is copied into a frame of zeros as wide as the padding, and its lines are taken apart by the
// stride: phase r of a line has the places r, r + stride, … of the framed one. So what a tap sees on a line
// of y lies side by side, at the same distance from the line's first place everywhere:
//   y[o] = Σ_tap w[tap] framed_x[o's place + tap's distance]
// For x's gradient y is framed, and each phase of x along all axes has the taps that reach it:
//   x[phase, j] = Σ_tap w[tap] framed_y[j's place + tap's distance]
#include "sluice/kernels/convolution/depthwise_planes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/convolution/axes.h"
#include "sluice/kernels/convolution/depthwise.h"
#include "sluice/kernels/convolution/few_pixels.h"
#include "sluice/kernels/convolution/lines.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Convolution = stablehlo::ConvolutionCall;
using Kind = Convolution::Kind;

// Multiplications of a thread's part.
constexpr size_t kWorkOfPart = size_t{1} << 17;
// What is read at once may end so many floats behind a line.
constexpr size_t kSlack = kFloatsOf<Lanes16>;

struct Tap {
  size_t index, distance;
};

// to[i] = Σ_tap w[tap] from[i + distance]. From `to` on so many floats may be written as there is room for.
template <typename L>
SLUICE_INLINE void sum_of_taps_by(const float* from, const std::vector<Tap>& taps, const float* w,
                                  size_t count, float* to, size_t room) {
  for (size_t i = 0; i < count; i += kFloatsOf<L>) {
    L sum = {}, seen;
    for (const Tap& tap : taps) {
      load(from + i + tap.distance, seen);
      sum += seen * w[tap.index];
    }
    if (i + kFloatsOf<L> <= room)
      store(sum, to + i);
    else
      for (size_t j = 0; i + j < count; ++j) to[i + j] = sum[j];
  }
}
SLUICE_BY_LANES(sum_of_taps,
                (const float* from, const std::vector<Tap>& taps, const float* w, size_t count, float* to,
                 size_t room),
                (from, taps, w, count, to, room))

// Adds Σ y[i] from[i + distance] to sums[tap], kSlack numbers side by side. What lies behind `count` is read
// and counts for nothing.
template <typename L>
SLUICE_INLINE void add_dots_by(const float* y, const float* from, const std::vector<Tap>& taps, size_t count,
                               float* sums) {
  L index, zero = {};
  for (size_t j = 0; j < kFloatsOf<L>; ++j) index[j] = static_cast<float>(j);
  for (const Tap& tap : taps) {
    float* const at = sums + tap.index * kSlack;
    L sum, of_y, seen;
    load(at, sum);
    size_t i = 0;
    for (; i + kFloatsOf<L> <= count; i += kFloatsOf<L>) {
      load(y + i, of_y);
      load(from + i + tap.distance, seen);
      sum += of_y * seen;
    }
    if (i < count) {
      load(y + i, of_y);
      load(from + i + tap.distance, seen);
      sum += index < static_cast<float>(count - i) ? of_y * seen : zero;
    }
    store(sum, at);
  }
}
SLUICE_BY_LANES(add_dots,
                (const float* y, const float* from, const std::vector<Tap>& taps, size_t count, float* sums),
                (y, from, taps, count, sums))

// One axis of x, of y and of what frames them. Place j of phase r is place j * stride + r of x with its
// padding.
struct Frame {
  size_t stride, padding, reach;  // of the window, in places of one phase
  size_t of_phase;                // places of a phase

  explicit Frame(const Axis& axis)
      : stride(static_cast<size_t>(axis.stride)),
        padding(static_cast<size_t>(axis.padding)),
        reach((axis.kernel - 1) * static_cast<size_t>(axis.dilation) / stride),
        of_phase(std::max(axis.out + reach, (axis.in - 1 + padding) / stride + 1)) {}
};

class DepthwisePlanes : public ConvolutionKernel {
 public:
  explicit DepthwisePlanes(const Convolution& c)
      : kind_(c.kind),
        axes_(axes_of(c)),
        frames_{Frame(axes_[0]), Frame(axes_[1]), Frame(axes_[2])},
        images_(static_cast<size_t>(c.x[0])),
        channels_(static_cast<size_t>(c.w[0])),
        taps_(spatial_size(c.w)),
        line_of_y_(frames_[2].of_phase + frames_[2].reach + kSlack) {
    if (kind_ == Kind::kData)
      list_taps_of_phases();
    else
      list_taps();
  }

  base::Status run(const ConvolutionTensors& at) const override {
    auto *x = static_cast<float*>(at.x), *w = static_cast<float*>(at.w), *y = static_cast<float*>(at.y);
    if (kind_ == Kind::kWeights) {
      parallel_pieces(channels_, std::max(size_t{1}, planes_of_part() / images_),
                      [&](size_t first, size_t count) { make_weights(x, y, first, count, w); });
      return {};
    }
    parallel_pieces(images_ * channels_, planes_of_part(), [&](size_t first, size_t count) {
      const Scratch framed(frame_floats() * sizeof(float));
      std::memset(framed.data(), 0, frame_floats() * sizeof(float));
      const Scratch phases(2 * line_of_phase() * sizeof(float));
      for (size_t i = first; i < first + count; ++i) {
        const float* const weights = w + i % channels_ * taps_;
        float *const plane_x = x + i * plane(&Axis::in), *const plane_y = y + i * plane(&Axis::out);
        if (kind_ == Kind::kForward) {
          frame_x(plane_x, framed.floats());
          make_y(framed.floats(), weights, plane_y);
        } else {
          frame_y(plane_y, framed.floats());
          make_x(framed.floats(), weights, phases.floats(), plane_x);
        }
      }
    });
    return {};
  }

 private:
  size_t plane(size_t Axis::*extent) const { return axes_[0].*extent * axes_[1].*extent * axes_[2].*extent; }
  size_t planes_of_part() const { return std::max(size_t{1}, kWorkOfPart / (taps_ * plane(&Axis::out))); }

  // Framed x: [padded places, padded places, phases, places of a phase].
  size_t phase_floats() const { return frames_[2].of_phase + kSlack; }
  size_t line_of_x() const { return frames_[2].stride * phase_floats(); }
  size_t lines_of_x(size_t d) const { return frames_[d].stride * frames_[d].of_phase; }
  size_t line_of_phase() const { return axes_[2].in + kSlack; }
  // Framed y: [reach and places, reach and places, reach and places].
  size_t lines_of_y(size_t d) const { return frames_[d].reach + frames_[d].of_phase; }
  size_t frame_floats() const {
    return kind_ == Kind::kData ? lines_of_y(0) * lines_of_y(1) * line_of_y_
                                : lines_of_x(0) * lines_of_x(1) * line_of_x();
  }

  // body(tap, its three places in the window)
  template <typename Body>
  void each_tap(const Body& body) const {
    for (size_t tap = 0; tap < taps_; ++tap)
      body(tap, std::array{tap / axes_[2].kernel / axes_[1].kernel, tap / axes_[2].kernel % axes_[1].kernel,
                           tap % axes_[2].kernel});
  }
  // How far a tap is from the window's first place along an axis.
  size_t offset(size_t d, size_t k) const { return k * static_cast<size_t>(axes_[d].dilation); }

  void list_taps() {
    taps_of_phase_.resize(1);
    each_tap([&](size_t tap, const std::array<size_t, 3>& k) {
      const size_t line = offset(0, k[0]) * lines_of_x(1) + offset(1, k[1]), last = offset(2, k[2]);
      taps_of_phase_[0].push_back(
          {tap, line * line_of_x() + last % frames_[2].stride * phase_floats() + last / frames_[2].stride});
    });
  }

  size_t number_of_phase(size_t r0, size_t r1, size_t r2) const {
    return (r0 * frames_[1].stride + r1) * frames_[2].stride + r2;
  }
  void list_taps_of_phases() {
    taps_of_phase_.resize(frames_[0].stride * frames_[1].stride * frames_[2].stride);
    each_tap([&](size_t tap, const std::array<size_t, 3>& k) {
      std::array<size_t, 3> r, shift;
      for (size_t d = 0; d < 3; ++d) {
        r[d] = offset(d, k[d]) % frames_[d].stride;
        shift[d] = frames_[d].reach - offset(d, k[d]) / frames_[d].stride;
      }
      taps_of_phase_[number_of_phase(r[0], r[1], r[2])].push_back(
          {tap, (shift[0] * lines_of_y(1) + shift[1]) * line_of_y_ + shift[2]});
    });
  }

  void frame_x(const float* x, float* framed) const {
    const Frame& last = frames_[2];
    const float* const end = x + plane(&Axis::in);
    for (size_t i0 = 0; i0 < axes_[0].in; ++i0)
      for (size_t i1 = 0; i1 < axes_[1].in; ++i1, x += axes_[2].in) {
        float* const line =
            framed + ((i0 + frames_[0].padding) * lines_of_x(1) + i1 + frames_[1].padding) * line_of_x();
        const auto there = [&](size_t first) {
          return line + (first + last.padding) % last.stride * phase_floats() +
                 (first + last.padding) / last.stride;
        };
        if (last.stride == 1)
          std::memcpy(there(0), x, axes_[2].in * sizeof(float));
        else
          split_pairs(x, axes_[2].in, static_cast<size_t>(end - x), there(0), there(1));
      }
  }

  void frame_y(const float* y, float* framed) const {
    for (size_t o0 = 0; o0 < axes_[0].out; ++o0)
      for (size_t o1 = 0; o1 < axes_[1].out; ++o1, y += axes_[2].out)
        std::memcpy(framed + ((o0 + frames_[0].reach) * lines_of_y(1) + o1 + frames_[1].reach) * line_of_y_ +
                        frames_[2].reach,
                    y, axes_[2].out * sizeof(float));
  }

  // Where in the framed x the windows of a line of y begin.
  size_t first_seen(size_t o0, size_t o1) const {
    return (o0 * frames_[0].stride * lines_of_x(1) + o1 * frames_[1].stride) * line_of_x();
  }

  // What is written behind a line is written over by the plane's next one.
  void make_y(const float* framed, const float* w, float* y) const {
    const float* const end = y + plane(&Axis::out);
    for (size_t o0 = 0; o0 < axes_[0].out; ++o0)
      for (size_t o1 = 0; o1 < axes_[1].out; ++o1, y += axes_[2].out)
        sum_of_taps(framed + first_seen(o0, o1), taps_of_phase_[0], w, axes_[2].out, y,
                    static_cast<size_t>(end - y));
  }

  // phases: for those of a line.
  void make_x(const float* framed, const float* w, float* phases, float* x) const {
    const Frame &outer = frames_[0], &middle = frames_[1], &last = frames_[2];
    const size_t in = axes_[2].in;
    const float* const end = x + plane(&Axis::in);
    for (size_t i0 = 0; i0 < axes_[0].in; ++i0)
      for (size_t i1 = 0; i1 < axes_[1].in; ++i1, x += in) {
        const size_t u0 = i0 + outer.padding, u1 = i1 + middle.padding, room = static_cast<size_t>(end - x);
        const float* const line =
            framed + (u0 / outer.stride * lines_of_y(1) + u1 / middle.stride) * line_of_y_;
        // Of the phase that begins with this place of x.
        for (size_t first = 0; first < std::min(last.stride, in); ++first) {
          const size_t u2 = first + last.padding, count = (in - first - 1) / last.stride + 1;
          float* const phase = last.stride == 1 ? x : phases + first * line_of_phase();
          sum_of_taps(
              line + u2 / last.stride,
              taps_of_phase_[number_of_phase(u0 % outer.stride, u1 % middle.stride, u2 % last.stride)], w,
              count, phase, last.stride == 1 ? room : line_of_phase());
        }
        if (last.stride == 2) join_pairs(phases, phases + line_of_phase(), in, room, x);
      }
  }

  // Of some channels. The sum of each plane by itself, so that small numbers are not lost in a long sum.
  void make_weights(const float* x, const float* y, size_t first, size_t count, float* w) const {
    const size_t of_y = plane(&Axis::out);
    float *framed, *padded_y, *sums;
    const ScratchArrays memory({{framed, frame_floats()}, {padded_y, of_y + kSlack}, {sums, taps_ * kSlack}});
    std::memset(framed, 0, frame_floats() * sizeof(float));
    std::memset(padded_y + of_y, 0, kSlack * sizeof(float));
    std::vector<double> total(taps_);
    for (size_t channel = first; channel < first + count; ++channel) {
      std::fill(total.begin(), total.end(), 0);
      for (size_t image = 0; image < images_; ++image) {
        const size_t here = image * channels_ + channel;
        frame_x(x + here * plane(&Axis::in), framed);
        std::memcpy(padded_y, y + here * of_y, of_y * sizeof(float));
        std::memset(sums, 0, taps_ * kSlack * sizeof(float));
        const float* line = padded_y;
        for (size_t o0 = 0; o0 < axes_[0].out; ++o0)
          for (size_t o1 = 0; o1 < axes_[1].out; ++o1, line += axes_[2].out)
            add_dots(line, framed + first_seen(o0, o1), taps_of_phase_[0], axes_[2].out, sums);
        for (size_t tap = 0; tap < taps_; ++tap)
          for (size_t j = 0; j < kSlack; ++j) total[tap] += sums[tap * kSlack + j];
      }
      for (size_t tap = 0; tap < taps_; ++tap) w[channel * taps_ + tap] = static_cast<float>(total[tap]);
    }
  }

  Kind kind_;
  Axes axes_;
  std::array<Frame, 3> frames_;
  size_t images_, channels_, taps_, line_of_y_;
  std::vector<std::vector<Tap>> taps_of_phase_;  // of x's phases for its gradient, else one list
};

}  // namespace

bool is_depthwise_by_planes(const Convolution& c) {
  // With shorter lines most of a register is empty. For larger strides lines would be taken apart number by
  // number. Small windows cost less than framing does: 3×3 on 28×28 pixels, stride 2, all three kinds, takes
  // 0.6 to 0.9 ms, and 0.5 by oneDNN with another order of the channels.
  constexpr int64_t kMinLine = 4, kMaxStride = 2;
  constexpr size_t kMinTaps = 12;
  // The weights' gradient is divided by channels.
  return has_lanes8() && c.channels_first && is_depthwise(c) && c.groups >= threads_of_a_call() &&
         c.y.back() >= kMinLine && c.stride.back() <= kMaxStride && spatial_size(c.w) >= kMinTaps;
}

std::unique_ptr<ConvolutionKernel> make_depthwise_planes(const Convolution& c) {
  return std::make_unique<DepthwisePlanes>(c);
}

}  // namespace sluice::kernels
