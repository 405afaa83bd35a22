// A plane of x is copied into a frame of zeros as wide as the padding, and its lines are split by the stride:
// phase r of a line has the places r, r + stride, … of the framed line. So the places that a tap sees for a
// line of y are contiguous, and their distance from the line's first place is the same for all lines:
//   y[o] = Σ_tap w[tap] framed_x[o's place + tap's distance]
// For x's gradient y is framed, and each phase of x along all axes has the taps that reach it:
//   x[phase, j] = Σ_tap w[tap] framed_y[j's place + tap's distance]
#include "sluice/kernels/convolution/depthwise_planes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/convolution/axes.h"
#include "sluice/kernels/convolution/depthwise.h"
#include "sluice/kernels/convolution/few_pixels.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Convolution = stablehlo::ConvolutionCall;
using Kind = Convolution::Kind;

// Multiplications of a thread's part.
constexpr size_t kWorkOfPart = size_t{1} << 17;
// The floats after a line that a read may touch.
constexpr size_t kSlack = kFloatsOf<Lanes16>;

// Taps, each with the distance of the places it sees from the first place of a line.
struct Taps {
  std::span<const size_t> distances;
  const float* weights;
};

// Writes a whole register if there is room, else at most `count` floats.
template <typename L>
SLUICE_INLINE void store_some(const L& value, size_t count, float* to, size_t room) {
  if (kFloatsOf<L> <= room) return store(value, to);
  for (size_t j = 0; j < std::min(count, kFloatsOf<L>); ++j) to[j] = value[j];
}

// Sets the lanes to 0, 1, 2 …
template <typename L>
SLUICE_INLINE void count_up(L& index) {
  for (size_t j = 0; j < kFloatsOf<L>; ++j) index[j] = static_cast<float>(j);
}

// Splits the sequence a, b into its even and its odd elements.
SLUICE_INLINE void every_second(const Lanes8& a, const Lanes8& b, Lanes8& even, Lanes8& odd) {
  even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
  odd = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}
SLUICE_INLINE void every_second(const Lanes16& a, const Lanes16& b, Lanes16& even, Lanes16& odd) {
  even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  odd = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}

SLUICE_INLINE void in_turns(const Lanes8& even, const Lanes8& odd, Lanes8& a, Lanes8& b) {
  a = __builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11);
  b = __builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15);
}
SLUICE_INLINE void in_turns(const Lanes16& even, const Lanes16& odd, Lanes16& a, Lanes16& b) {
  a = __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  b = __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// A plane whose lines are copied to places in a frame.
struct Framing {
  const float* plane;
  size_t count;                  // floats of a line
  std::span<const size_t> even;  // [line]: where its first float goes, and every second one after that
  std::span<const size_t> odd;   // [line]: where its second float goes, and every second one after that
  size_t readable;               // floats that may be read from `plane` on
};

// Splits lines by even and odd places. If a line ends within a register, the rest of the register is 0.
template <typename L>
SLUICE_INLINE void split_lines_by(const Framing& x, float* framed) {
  constexpr size_t kPair = 2 * kFloatsOf<L>;
  L index, zero = {};
  count_up(index);
  const float* from = x.plane;
  for (size_t line = 0; line < x.even.size(); ++line, from += x.count) {
    float *const even = framed + x.even[line], *const odd = framed + x.odd[line];
    const size_t readable = x.readable - line * x.count;
    size_t i = 0;
    for (; i < x.count && i + kPair <= readable; i += kPair) {
      L a, b, evens, odds;
      load(from + i, a);
      load(from + i + kFloatsOf<L>, b);
      every_second(a, b, evens, odds);
      if (x.count - i < kPair) {
        evens = index < static_cast<float>((x.count - i + 1) / 2) ? evens : zero;
        odds = index < static_cast<float>((x.count - i) / 2) ? odds : zero;
      }
      store(evens, even + i / 2);
      store(odds, odd + i / 2);
    }
    for (; i < x.count; ++i) (i % 2 == 0 ? even : odd)[i / 2] = from[i];
  }
}
SLUICE_BY_LANES(split_lines, (const Framing& x, float* framed), (x, framed))

// Some lines of a plane, one after the other, of `count` floats; `room` floats may be written.
struct PlaneLines {
  float* to;
  size_t count, room;
};

// to[line, i] = bias + Σ_tap weight[tap] from[first[line] + i + distance] for kLines lines from `line` on. A
// line shorter than a register is written in one store, and the next line overwrites the excess. A longer
// line ends with a register that begins before the line's end.
template <typename L, size_t kLines>
SLUICE_INLINE void sum_some_lines(const float* from, std::span<const size_t> first, size_t line,
                                  const Taps& taps, float bias, const PlaneLines& y) {
  for (size_t begin = 0; begin < y.count; begin += kFloatsOf<L>) {
    const size_t i = y.count < kFloatsOf<L> ? 0 : std::min(begin, y.count - kFloatsOf<L>);
    const float* there[kLines];
    L sums[kLines], seen;
#pragma GCC unroll 4
    for (size_t k = 0; k < kLines; ++k) sums[k] = L{} + bias, there[k] = from + first[line + k] + i;
    for (size_t t = 0; t < taps.distances.size(); ++t) {
      const float weight = taps.weights[t];
#pragma GCC unroll 4
      for (size_t k = 0; k < kLines; ++k) {
        load(there[k] + taps.distances[t], seen);
        sums[k] += seen * weight;
      }
    }
#pragma GCC unroll 4
    for (size_t k = 0; k < kLines; ++k) {
      const size_t at = (line + k) * y.count + i;
      store_some(sums[k], y.count, y.to + at, y.room - at);
    }
  }
}
template <typename L>
SLUICE_INLINE void sum_lines_by(const float* from, std::span<const size_t> first, const Taps& taps,
                                float bias, const PlaneLines& y) {
  constexpr size_t kLines = 4;
  size_t line = 0;
  for (; line + kLines <= first.size(); line += kLines)
    sum_some_lines<L, kLines>(from, first, line, taps, bias, y);
  for (; line < first.size(); ++line) sum_some_lines<L, 1>(from, first, line, taps, bias, y);
}
SLUICE_BY_LANES(sum_lines,
                (const float* from, std::span<const size_t> first, const Taps& taps, float bias,
                 const PlaneLines& y),
                (from, first, taps, bias, y))

// The taps [begin, end) for the even or the odd places of a line, which see places from `first` on.
struct Phase {
  size_t first, begin, end;
};
struct Phases {
  Phase even, odd;
};
template <typename L>
SLUICE_INLINE void sum_phase(const float* from, const Phase& phase, const Taps& taps, float bias, L& sum) {
  L seen;
  sum = L{} + bias;
  for (size_t t = phase.begin; t < phase.end; ++t) {
    load(from + phase.first + taps.distances[t], seen);
    sum += seen * taps.weights[t];
  }
}
template <typename L>
SLUICE_INLINE void sum_in_turns_by(const float* from, std::span<const Phases> lines, const Taps& taps,
                                   float bias, const PlaneLines& x) {
  for (size_t line = 0; line < lines.size(); ++line)
    for (size_t i = 0; i < x.count; i += 2 * kFloatsOf<L>) {
      const size_t at = line * x.count + i;
      L even, odd, a, b;
      sum_phase(from + i / 2, lines[line].even, taps, bias, even);
      sum_phase(from + i / 2, lines[line].odd, taps, bias, odd);
      in_turns(even, odd, a, b);
      store_some(a, x.count - i, x.to + at, x.room - at);
      if (x.count - i > kFloatsOf<L>)
        store_some(b, x.count - i - kFloatsOf<L>, x.to + at + kFloatsOf<L>, x.room - at - kFloatsOf<L>);
    }
}
SLUICE_BY_LANES(sum_in_turns,
                (const float* from, std::span<const Phases> lines, const Taps& taps, float bias,
                 const PlaneLines& x),
                (from, lines, taps, bias, x))

// A plane of y, and for each of its lines where the places it sees begin in a framed plane. The floats after
// a line of y are read, but do not count.
struct Seen {
  const float *y, *from;
  std::span<const size_t> first;
  size_t count;  // floats of a line
};
// Adds Σ y[line, i] from[first[line] + i + distance] to the sums of kTaps taps, kSlack numbers each.
template <typename L, size_t kTaps>
SLUICE_INLINE void add_some_dots(const Seen& seen, const size_t* distances, float* sums) {
  L index, zero = {};
  count_up(index);
  L of_tap[kTaps], of_y, of_x;
  for (size_t t = 0; t < kTaps; ++t) load(sums + t * kSlack, of_tap[t]);
  for (size_t line = 0; line < seen.first.size(); ++line) {
    const float *const y = seen.y + line * seen.count, *const x = seen.from + seen.first[line];
    size_t i = 0;
    for (; i + kFloatsOf<L> <= seen.count; i += kFloatsOf<L>) {
      load(y + i, of_y);
#pragma GCC unroll 9
      for (size_t t = 0; t < kTaps; ++t) {
        load(x + i + distances[t], of_x);
        of_tap[t] += of_y * of_x;
      }
    }
    if (i == seen.count) continue;
    const auto counts = index < static_cast<float>(seen.count - i);
    load(y + i, of_y);
#pragma GCC unroll 9
    for (size_t t = 0; t < kTaps; ++t) {
      load(x + i + distances[t], of_x);
      of_tap[t] += counts ? of_y * of_x : zero;
    }
  }
  for (size_t t = 0; t < kTaps; ++t) store(of_tap[t], sums + t * kSlack);
}
// Takes the nine taps of 3×3 at once, as many as fit into the registers.
template <typename L>
SLUICE_INLINE void add_dots_by(const Seen& seen, std::span<const size_t> distances, float* sums) {
  size_t t = 0;
  for (; t + 9 <= distances.size(); t += 9) add_some_dots<L, 9>(seen, &distances[t], sums + t * kSlack);
  for (; t + 3 <= distances.size(); t += 3) add_some_dots<L, 3>(seen, &distances[t], sums + t * kSlack);
  for (; t < distances.size(); ++t) add_some_dots<L, 1>(seen, &distances[t], sums + t * kSlack);
}
SLUICE_BY_LANES(add_dots, (const Seen& seen, std::span<const size_t> distances, float* sums),
                (seen, distances, sums))

// One axis of x, of y and of their frames. Place j of phase r is place j * stride + r of x with its padding.
struct Frame {
  size_t stride, padding, reach;  // reach: of the window, in places of one phase
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
    if (kind_ == Kind::kData) {
      list_taps_of_phases();
      list_lines_of_x();
    } else {
      list_taps();
      list_lines_of_y();
      list_framed_lines();
    }
  }

  base::Status run(const ConvolutionTensors& at) const override {
    auto *x = static_cast<float*>(at.x), *w = static_cast<float*>(at.w), *y = static_cast<float*>(at.y);
    if (kind_ == Kind::kWeights) {
      parallel_pieces(channels_, std::max(size_t{1}, planes_of_part() / images_),
                      [&](size_t first, size_t count) { make_weights(x, y, first, count, w); });
      return {};
    }
    parallel_pieces(images_ * channels_, planes_of_part(), [&](size_t first, size_t count) {
      float *framed, *weights;
      const ScratchArrays memory({{framed, frame_floats()}, {weights, taps_}});
      std::memset(framed, 0, frame_floats() * sizeof(float));
      for (size_t i = first; i < first + count; ++i) {
        const float bias = at.bias == nullptr ? 0 : at.bias[i % channels_];
        for (size_t t = 0; t < taps_; ++t) weights[t] = w[i % channels_ * taps_ + order_[t]];
        float *const plane_x = x + i * plane(&Axis::in), *const plane_y = y + i * plane(&Axis::out);
        if (kind_ == Kind::kForward) {
          frame_x(plane_x, i, framed);
          sum_lines(framed, first_seen_, {distances_, weights}, bias,
                    {plane_y, axes_[2].out, plane(&Axis::out)});
        } else {
          frame_y(plane_y, framed);
          make_x(framed, {distances_, weights}, bias, plane_x);
        }
      }
    });
    return {};
  }

 private:
  size_t plane(size_t Axis::*extent) const { return axes_[0].*extent * axes_[1].*extent * axes_[2].*extent; }
  size_t planes_of_part() const { return std::max(size_t{1}, kWorkOfPart / (taps_ * plane(&Axis::out))); }

  // The sizes of framed x: [padded places, padded places, phases, places of a phase].
  size_t phase_floats() const { return frames_[2].of_phase + kSlack; }
  size_t line_of_x() const { return frames_[2].stride * phase_floats(); }
  size_t lines_of_x(size_t d) const { return frames_[d].stride * frames_[d].of_phase; }
  // The sizes of framed y: [reach and places, reach and places, reach and places].
  size_t lines_of_y(size_t d) const { return frames_[d].reach + frames_[d].of_phase; }
  size_t frame_floats() const {
    return kind_ == Kind::kData ? lines_of_y(0) * lines_of_y(1) * line_of_y_
                                : lines_of_x(0) * lines_of_x(1) * line_of_x();
  }

  // Calls body(tap, its three places in the window).
  template <typename Body>
  void each_tap(const Body& body) const {
    for (size_t tap = 0; tap < taps_; ++tap)
      body(tap, std::array{tap / axes_[2].kernel / axes_[1].kernel, tap / axes_[2].kernel % axes_[1].kernel,
                           tap % axes_[2].kernel});
  }
  // Returns how far a tap is from the window's first place along an axis.
  size_t offset(size_t d, size_t k) const { return k * static_cast<size_t>(axes_[d].dilation); }

  void list_taps() {
    each_tap([&](size_t tap, const std::array<size_t, 3>& k) {
      const size_t line = offset(0, k[0]) * lines_of_x(1) + offset(1, k[1]), last = offset(2, k[2]);
      order_.push_back(tap);
      distances_.push_back(line * line_of_x() + last % frames_[2].stride * phase_floats() +
                           last / frames_[2].stride);
    });
  }

  size_t number_of_phase(size_t r0, size_t r1, size_t r2) const {
    return (r0 * frames_[1].stride + r1) * frames_[2].stride + r2;
  }
  // Lists the taps, phase after phase.
  void list_taps_of_phases() {
    const size_t phases = frames_[0].stride * frames_[1].stride * frames_[2].stride;
    for (size_t phase = 0; phase < phases; ++phase) {
      first_tap_.push_back(order_.size());
      each_tap([&](size_t tap, const std::array<size_t, 3>& k) {
        std::array<size_t, 3> r, shift;
        for (size_t d = 0; d < 3; ++d) {
          r[d] = offset(d, k[d]) % frames_[d].stride;
          shift[d] = frames_[d].reach - offset(d, k[d]) / frames_[d].stride;
        }
        if (number_of_phase(r[0], r[1], r[2]) != phase) return;
        order_.push_back(tap);
        distances_.push_back((shift[0] * lines_of_y(1) + shift[1]) * line_of_y_ + shift[2]);
      });
    }
    first_tap_.push_back(order_.size());
  }

  void list_lines_of_y() {
    for (size_t o0 = 0; o0 < axes_[0].out; ++o0)
      for (size_t o1 = 0; o1 < axes_[1].out; ++o1)
        first_seen_.push_back((o0 * frames_[0].stride * lines_of_x(1) + o1 * frames_[1].stride) *
                              line_of_x());
  }
  void list_framed_lines() {
    const Frame& last = frames_[2];
    for (size_t u0 = frames_[0].padding; u0 < frames_[0].padding + axes_[0].in; ++u0)
      for (size_t u1 = frames_[1].padding; u1 < frames_[1].padding + axes_[1].in; ++u1)
        for (size_t first = 0; first < 2; ++first)
          framed_[first].push_back((u0 * lines_of_x(1) + u1) * line_of_x() +
                                   (first + last.padding) % last.stride * phase_floats() +
                                   (first + last.padding) / last.stride);
  }
  void list_lines_of_x() {
    const Frame &outer = frames_[0], &middle = frames_[1], &last = frames_[2];
    for (size_t u0 = outer.padding; u0 < outer.padding + axes_[0].in; ++u0)
      for (size_t u1 = middle.padding; u1 < middle.padding + axes_[1].in; ++u1) {
        const size_t line = (u0 / outer.stride * lines_of_y(1) + u1 / middle.stride) * line_of_y_;
        const auto phase = [&](size_t u2) {
          const size_t number = number_of_phase(u0 % outer.stride, u1 % middle.stride, u2 % last.stride);
          return Phase{line + u2 / last.stride, first_tap_[number], first_tap_[number + 1]};
        };
        phases_.push_back({phase(last.padding), phase(last.padding + 1)});
        first_seen_.push_back(phases_.back().even.first);
      }
  }

  // Copies plane `number` of x into the frame.
  void frame_x(const float* x, size_t number, float* framed) const {
    const size_t in = axes_[2].in;
    if (frames_[2].stride == 2)
      return split_lines({x, in, framed_[0], framed_[1], (images_ * channels_ - number) * plane(&Axis::in)},
                         framed);
    for (const size_t first : framed_[0]) {
      std::memcpy(framed + first, x, in * sizeof(float));
      x += in;
    }
  }

  void frame_y(const float* y, float* framed) const {
    for (size_t o0 = 0; o0 < axes_[0].out; ++o0)
      for (size_t o1 = 0; o1 < axes_[1].out; ++o1, y += axes_[2].out)
        std::memcpy(framed + ((o0 + frames_[0].reach) * lines_of_y(1) + o1 + frames_[1].reach) * line_of_y_ +
                        frames_[2].reach,
                    y, axes_[2].out * sizeof(float));
  }

  void make_x(const float* framed, const Taps& taps, float bias, float* x) const {
    const size_t in = axes_[2].in, all = plane(&Axis::in);
    if (frames_[2].stride == 2) return sum_in_turns(framed, phases_, taps, bias, {x, in, all});
    if (first_tap_.size() == 2) return sum_lines(framed, first_seen_, taps, bias, {x, in, all});
    for (size_t line = 0; line < phases_.size(); ++line) {
      const auto [first, begin, end] = phases_[line].even;
      sum_lines(framed, std::span(first_seen_).subspan(line, 1),
                {taps.distances.subspan(begin, end - begin), taps.weights + begin}, bias,
                {x + line * in, in, all - line * in});
    }
  }

  // Makes the weights' gradient of some channels.
  void make_weights(const float* x, const float* y, size_t first, size_t count, float* w) const {
    const size_t of_y = plane(&Axis::out);
    float *framed, *last_y, *sums;
    const ScratchArrays memory({{framed, frame_floats()}, {last_y, of_y + kSlack}, {sums, taps_ * kSlack}});
    std::memset(framed, 0, frame_floats() * sizeof(float));
    std::vector<double> total(taps_);
    for (size_t channel = first; channel < first + count; ++channel) {
      std::fill(total.begin(), total.end(), 0);
      std::memset(sums, 0, taps_ * kSlack * sizeof(float));
      for (size_t image = 0; image < images_; ++image) {
        const size_t here = image * channels_ + channel;
        frame_x(x + here * plane(&Axis::in), here, framed);
        const float* plane_y = y + here * of_y;
        // Reads must not go beyond the end of the last plane.
        if (here + 1 == images_ * channels_) {
          std::memcpy(last_y, plane_y, of_y * sizeof(float));
          plane_y = last_y;
        }
        add_dots({plane_y, framed, first_seen_, axes_[2].out}, distances_, sums);
        // Moves the sums to double before small numbers are lost in a long sum.
        if ((image + 1) % images_of_sum() != 0 && image + 1 < images_) continue;
        for (size_t tap = 0; tap < taps_; ++tap)
          for (size_t j = 0; j < kSlack; ++j) total[tap] += double{sums[tap * kSlack + j]};
        std::memset(sums, 0, taps_ * kSlack * sizeof(float));
      }
      for (size_t tap = 0; tap < taps_; ++tap) w[channel * taps_ + tap] = static_cast<float>(total[tap]);
    }
  }
  size_t images_of_sum() const {
    constexpr size_t kPixels = 1024;
    return std::max(size_t{1}, kPixels / plane(&Axis::out));
  }

  Kind kind_;
  Axes axes_;
  std::array<Frame, 3> frames_;
  size_t images_, channels_, taps_, line_of_y_;
  // The taps: their indices, and the distances of the places they see from the place where a line's windows
  // begin. For x's gradient they are sorted by phase, and first_tap_ has the first tap of each phase.
  std::vector<size_t> order_, distances_, first_tap_;
  // For each line of the result: where its windows begin in the framed plane.
  std::vector<size_t> first_seen_;
  std::vector<Phases> phases_;                 // of each line of x
  std::array<std::vector<size_t>, 2> framed_;  // for each line of x: where its first two places go
};

}  // namespace

bool is_depthwise_by_planes(const Convolution& c) {
  // With shorter lines most of a register is empty; then oneDNN with reordered channels is faster if windows
  // are small (measured, 3×3 and 5×5). For larger strides, lines would be split number by number.
  constexpr int64_t kMaxStride = 2;
  constexpr size_t kSmallWindow = 12;
  const int64_t min_line = spatial_size(c.w) < kSmallWindow ? 10 : 4;
  // The weights' gradient is divided by channels.
  return has_lanes8() && c.channels_first && is_depthwise(c) && c.groups >= threads_of_a_call() &&
         c.y.back() >= min_line && c.stride.back() <= kMaxStride;
}

std::unique_ptr<ConvolutionKernel> make_depthwise_planes(const Convolution& c) {
  return std::make_unique<DepthwisePlanes>(c);
}

}  // namespace sluice::kernels
