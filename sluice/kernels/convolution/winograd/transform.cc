#include "sluice/kernels/convolution/winograd/transform.h"

#include "sluice/kernels/lanes.h"

namespace sluice::kernels {
namespace {

constexpr int kKernelSide = 6;
// With stride 2, the planes of a side from this one on belong to the kernel's middle element.
constexpr int kOuter = 5;

// The transforms of each tiling along one side; `step` and `to_step` are the distances between the elements
// of the vectors. T: float or Lanes….

struct Plain {
  static constexpr TileSide kSide = side_of(Tiling::kPlain);
  static constexpr size_t kernel_plane(int i, int j) { return static_cast<size_t>(i * kKernelSide + j); }
  static constexpr size_t plane(int i, int j) { return kernel_plane(i, j); }

  template <typename T>
  static SLUICE_INLINE void input(const T* x, int step, T* to, int to_step) {
    const T x0 = x[0], x1 = x[step], x2 = x[2 * step], x3 = x[3 * step], x4 = x[4 * step], x5 = x[5 * step];
    to[0] = 4 * x0 - 5 * x2 + x4;
    to[to_step] = x4 + x3 - 4 * (x1 + x2);
    to[2 * to_step] = x4 - x3 + 4 * (x1 - x2);
    to[3 * to_step] = x4 - x2 + 2 * (x3 - x1);
    to[4 * to_step] = x4 - x2 - 2 * (x3 - x1);
    to[5 * to_step] = 4 * x1 - 5 * x3 + x5;
  }
  template <typename T>
  static SLUICE_INLINE void output(const T* m, int step, T* to, int to_step) {
    const T sum = m[step] + m[2 * step], difference = m[step] - m[2 * step];
    const T far_sum = m[3 * step] + m[4 * step], far_difference = m[3 * step] - m[4 * step];
    to[0] = m[0] + sum + far_sum;
    to[to_step] = difference + 2 * far_difference;
    to[2 * to_step] = sum + 4 * far_sum;
    to[3 * to_step] = difference + 8 * far_difference + m[5 * step];
  }
  template <typename T>
  static SLUICE_INLINE void weight(const T* g, int step, T* to, int to_step) {
    const T ends = g[0] + g[2 * step], far_ends = g[0] + 4 * g[2 * step];
    to[0] = g[0] * (1.f / 4);
    to[to_step] = (ends + g[step]) * (-1.f / 6);
    to[2 * to_step] = (ends - g[step]) * (-1.f / 6);
    to[3 * to_step] = (far_ends + 2 * g[step]) * (1.f / 24);
    to[4 * to_step] = (far_ends - 2 * g[step]) * (1.f / 24);
    to[5 * to_step] = g[2 * step];
  }
  template <typename T>
  static SLUICE_INLINE void gradient(const T* y, int step, T* to, int to_step) {
    const T even = y[0] + y[2 * step], odd = y[step] + y[3 * step];
    const T far_even = y[0] + 4 * y[2 * step], far_odd = 2 * y[step] + 8 * y[3 * step];
    to[0] = y[0];
    to[to_step] = even + odd;
    to[2 * to_step] = even - odd;
    to[3 * to_step] = far_even + far_odd;
    to[4 * to_step] = far_even - far_odd;
    to[5 * to_step] = y[3 * step];
  }
  template <typename T>
  static SLUICE_INLINE void kernel(const T* m, int step, T* to, int to_step) {
    const T near = (m[step] + m[2 * step]) * (1.f / 6), far = m[3 * step] + m[4 * step];
    to[0] = m[0] * (1.f / 4) - near + far * (1.f / 24);
    to[to_step] = (m[2 * step] - m[step]) * (1.f / 6) + (m[3 * step] - m[4 * step]) * (1.f / 12);
    to[2 * to_step] = far * (1.f / 6) - near + m[5 * step];
  }
};

// The base of both directions of a stride of 2: F(4, 2), and the order of the planes.
struct Strided {
  // The order of kernel planes: first those that meet one plane of a tile, then those that meet four, then
  // the one that meets sixteen.
  static constexpr size_t kernel_plane(int i, int j) {
    const int at = i < kOuter && j < kOuter ? i * kOuter + j : j == kOuter ? 25 + i : 30 + j;
    return static_cast<size_t>(i == kOuter && j == kOuter ? 35 : at);
  }
  static constexpr size_t plane(int i, int j) {
    const bool middle_row = i >= kOuter, middle_column = j >= kOuter;
    if (middle_row && middle_column) return static_cast<size_t>(65 + (i - kOuter) * 4 + j - kOuter);
    if (middle_column) return static_cast<size_t>(25 + i * 4 + j - kOuter);
    return static_cast<size_t>(middle_row ? 45 + j * 4 + i - kOuter : i * kOuter + j);
  }

  template <typename T>
  static SLUICE_INLINE void input_outer(const T* x, int step, T* to, int to_step) {
    const T x0 = x[0], x1 = x[step], x2 = x[2 * step], x3 = x[3 * step], x4 = x[4 * step];
    to[0] = 2 * (x0 - x2) - x1 + x3;
    to[to_step] = x3 - x2 - 2 * x1;
    to[2 * to_step] = x3 - 3 * x2 + 2 * x1;
    to[3 * to_step] = x3 - x1;
    to[4 * to_step] = x4 - x2 + 2 * (x1 - x3);
  }
  template <typename T>
  static SLUICE_INLINE void output_outer(const T* m, int step, T* to, int to_step) {
    const T sum = m[step] + m[2 * step], difference = m[step] - m[2 * step], far = m[3 * step];
    to[0] = m[0] + sum + far;
    to[to_step] = difference + 2 * far;
    to[2 * to_step] = sum + 4 * far;
    to[3 * to_step] = difference + 8 * far + m[4 * step];
  }
  template <typename T>
  static SLUICE_INLINE void weight(const T* g, int step, T* to, int to_step) {
    const T first = g[0], last = g[2 * step];
    to[0] = first * (1.f / 2);
    to[to_step] = (first + last) * (-1.f / 2);
    to[2 * to_step] = (last - first) * (1.f / 6);
    to[3 * to_step] = (first + 2 * last) * (1.f / 6);
    to[4 * to_step] = last;
    to[5 * to_step] = g[step];
  }
  template <typename T>
  static SLUICE_INLINE void kernel(const T* m, int step, T* to, int to_step) {
    to[0] = (m[0] - m[step]) * (1.f / 2) + (m[3 * step] - m[2 * step]) * (1.f / 6);
    to[to_step] = m[5 * step];
    to[2 * to_step] = m[2 * step] * (1.f / 6) + m[3 * step] * (1.f / 3) - m[step] * (1.f / 2) + m[4 * step];
  }
};

struct Halving : Strided {
  static constexpr TileSide kSide = side_of(Tiling::kHalving);

  template <typename T>
  static SLUICE_INLINE void input(const T* x, int step, T* to, int to_step) {
    input_outer(x, 2 * step, to, to_step);
    for (int i = 0; i < 4; ++i) to[(kOuter + i) * to_step] = x[(2 * i + 1) * step];
  }
  template <typename T>
  static SLUICE_INLINE void output(const T* m, int step, T* to, int to_step) {
    output_outer(m, step, to, to_step);
    for (int i = 0; i < 4; ++i) to[i * to_step] += m[(kOuter + i) * step];
  }
  template <typename T>
  static SLUICE_INLINE void gradient(const T* y, int step, T* to, int to_step) {
    const T even = y[0] + y[2 * step], odd = y[step] + y[3 * step];
    to[0] = y[0];
    to[to_step] = even + odd;
    to[2 * to_step] = even - odd;
    to[3 * to_step] = y[0] + 2 * y[step] + 4 * y[2 * step] + 8 * y[3 * step];
    to[4 * to_step] = y[3 * step];
    for (int i = 0; i < 4; ++i) to[(kOuter + i) * to_step] = y[i * step];
  }
};

struct Doubling : Strided {
  static constexpr TileSide kSide = side_of(Tiling::kDoubling);

  // In this direction the odd pixels are the input's own pixels.
  template <typename T>
  static SLUICE_INLINE void input(const T* x, int step, T* to, int to_step) {
    input_outer(x, step, to, to_step);
    for (int i = 0; i < 4; ++i) to[(kOuter + i) * to_step] = x[i * step];
  }
  template <typename T>
  static SLUICE_INLINE void output(const T* m, int step, T* to, int to_step) {
    for (int i = 0; i < 4; ++i) to[2 * i * to_step] = m[(kOuter + i) * step];
    output_outer(m, step, to + to_step, 2 * to_step);
  }
};

// ---- Tiles: first along the columns, each as soon as it is read, then along the rows ----

// Loops over a side must be unrolled: the arrays that they index are in registers.
#define SLUICE_UNROLL _Pragma("GCC unroll 9")

template <bool kWhole, int kSide, typename Float>
SLUICE_INLINE Float* pixel(const TilePixels<Float>& pixels, int i, int j) {
  if (kWhole)
    return pixels.first + static_cast<size_t>(i) * pixels.row_step +
           static_cast<size_t>(j) * pixels.column_step;
  return pixels.each[static_cast<size_t>(i * kSide + j)];
}

template <typename S, typename T>
SLUICE_INLINE void store_row(const T* row, int i, size_t stride, float* to) {
  SLUICE_UNROLL
  for (int j = 0; j < S::kSide.planes; ++j) store(row[j], to + S::plane(i, j) * stride);
}

// The transforms that make planes of pixels: the side of their tile, and the step along its columns and rows.
template <typename S>
struct ToInput : S {  // Bᵀ d B
  static constexpr int kPixels = S::kSide.in;
  template <typename T>
  static SLUICE_INLINE void along(const T* x, int step, T* to, int to_step) {
    S::input(x, step, to, to_step);
  }
};
template <typename S>
struct ToGradient : S {  // A y Aᵀ, y a tile of gradients
  static constexpr int kPixels = S::kSide.out;
  template <typename T>
  static SLUICE_INLINE void along(const T* y, int step, T* to, int to_step) {
    S::gradient(y, step, to, to_step);
  }
};

// Makes the planes of kCount times T's channels, from c on. S: ToInput or ToGradient.
template <typename S, bool kWhole, typename T, size_t kCount>
SLUICE_INLINE void make_planes(const TileInputs& from, size_t c, size_t stride, float* to) {
  constexpr int kPixels = S::kPixels, kPlanes = S::kSide.planes;
  T half[kCount][kPlanes * kPixels];
  SLUICE_UNROLL
  for (int j = 0; j < kPixels; ++j) {
    SLUICE_UNROLL
    for (size_t k = 0; k < kCount; ++k) {
      T column[kPixels];
      SLUICE_UNROLL
      for (int i = 0; i < kPixels; ++i)
        load(pixel<kWhole, kPixels>(from, i, j) + c + k * kFloatsOf<T>, column[i]);
      S::along(column, 1, half[k] + j, kPixels);
    }
  }
  SLUICE_UNROLL
  for (int i = 0; i < kPlanes; ++i) {
    SLUICE_UNROLL
    for (size_t k = 0; k < kCount; ++k) {
      T row[kPlanes];
      S::along(half[k] + i * kPixels, 1, row, 1);
      store_row<S>(row, i, stride, to + c + k * kFloatsOf<T>);
    }
  }
}

// Computes Aᵀ m A of the filters from f on.
template <typename S, bool kWhole, typename T>
SLUICE_INLINE void output_filters(const float* from, size_t f, size_t stride, const TileOutputs& to) {
  constexpr int kPlanes = S::kSide.planes, kOut = S::kSide.out;
  T half[kOut * kPlanes];
  SLUICE_UNROLL
  for (int j = 0; j < kPlanes; ++j) {
    T column[kPlanes];
    SLUICE_UNROLL
    for (int i = 0; i < kPlanes; ++i) load(from + S::plane(i, j) * stride + f, column[i]);
    S::output(column, 1, half + j, kPlanes);
  }
  SLUICE_UNROLL
  for (int i = 0; i < kOut; ++i) {
    T row[kOut];
    S::output(half + i * kPlanes, 1, row, 1);
    SLUICE_UNROLL
    for (int j = 0; j < kOut; ++j) store(row[j], pixel<kWhole, kOut>(to, i, j) + f);
  }
}

// Computes G g Gᵀ of one kernel for each lane of T; kernels are `step` floats apart.
template <typename S, typename T>
SLUICE_INLINE void weight_kernels(const float* w, size_t step, bool rotated, size_t stride, float* to) {
  constexpr size_t kCount = kFloatsOf<T>;
  float gathered[9][kCount];
  for (size_t lane = 0; lane < kCount; ++lane)
    for (size_t i = 0; i < 9; ++i) gathered[rotated ? 8 - i : i][lane] = w[lane * step + i];
  T g[9], half[kKernelSide * 3], planes[kKernelPlanes];
  for (size_t i = 0; i < 9; ++i) load(gathered[i], g[i]);
  for (int i = 0; i < 3; ++i) S::weight(g + i, 3, half + i, 3);
  for (int i = 0; i < kKernelSide; ++i) S::weight(half + i * 3, 1, planes + i * kKernelSide, 1);
  for (int i = 0; i < kKernelSide; ++i)
    for (int j = 0; j < kKernelSide; ++j)
      store(planes[i * kKernelSide + j], to + S::kernel_plane(i, j) * stride);
}

// Computes Gᵀ m G of one kernel for each lane of T, into kernels that are `step` floats apart.
template <typename S, typename T>
SLUICE_INLINE void kernel_gradients(const float* from, size_t stride, size_t step, float* w) {
  constexpr size_t kCount = kFloatsOf<T>;
  T m[kKernelPlanes], half[3 * kKernelSide], g[9];
  for (int i = 0; i < kKernelSide; ++i)
    for (int j = 0; j < kKernelSide; ++j) load(from + S::kernel_plane(i, j) * stride, m[i * kKernelSide + j]);
  for (int i = 0; i < kKernelSide; ++i) S::kernel(m + i, kKernelSide, half + i, kKernelSide);
  for (int i = 0; i < 3; ++i) S::kernel(half + i * kKernelSide, 1, g + i * 3, 1);
  float spread[9][kCount];
  for (size_t i = 0; i < 9; ++i) store(g[i], spread[i]);
  for (size_t lane = 0; lane < kCount; ++lane)
    for (size_t i = 0; i < 9; ++i) w[lane * step + i] = spread[i][lane];
}

// Channels are processed by lines of the cache, each two Lanes8 long (measured: half a line at a time takes
// up to 1.6 times as long with 256 channels; in between, the line may have left the L1 cache). The rest is
// processed one by one.

// L: Lanes….
template <typename L, typename S, bool kWhole>
SLUICE_INLINE void planes_of_channels(const TileInputs& from, size_t channels, size_t stride, float* to) {
  constexpr size_t kLine = kFloatsOf<Lanes16>, kCount = kLine / kFloatsOf<L>;
  size_t c = 0;
  for (; c + kLine <= channels; c += kLine) make_planes<S, kWhole, L, kCount>(from, c, stride, to);
  if (kCount > 1 && c + kFloatsOf<L> <= channels) {
    make_planes<S, kWhole, L, 1>(from, c, stride, to);
    c += kFloatsOf<L>;
  }
  for (; c < channels; ++c) make_planes<S, kWhole, float, 1>(from, c, stride, to);
}
template <typename L, typename S>
SLUICE_INLINE void planes_of(const TileInputs& from, size_t channels, size_t stride, float* to) {
  from.whole ? planes_of_channels<L, S, true>(from, channels, stride, to)
             : planes_of_channels<L, S, false>(from, channels, stride, to);
}
template <typename L, typename S, bool kWhole>
SLUICE_INLINE void output_of_filters(const float* from, size_t filters, size_t stride,
                                     const TileOutputs& to) {
  // Here GCC compiles two Lanes16 better than an array of Lanes8 (measured: the array takes 1.2 to 1.5 times
  // as long).
  constexpr size_t kLine = kFloatsOf<Lanes16>;
  size_t f = 0;
  for (; f + kLine <= filters; f += kLine) output_filters<S, kWhole, Lanes16>(from, f, stride, to);
  if (kFloatsOf<L> < kLine && f + kFloatsOf<L> <= filters) {
    output_filters<S, kWhole, L>(from, f, stride, to);
    f += kFloatsOf<L>;
  }
  for (; f < filters; ++f) output_filters<S, kWhole, float>(from, f, stride, to);
}
template <typename L, typename S>
SLUICE_INLINE void output_of(const float* from, size_t filters, size_t stride, const TileOutputs& to) {
  to.whole ? output_of_filters<L, S, true>(from, filters, stride, to)
           : output_of_filters<L, S, false>(from, filters, stride, to);
}
template <typename L, typename S>
SLUICE_INLINE void weight_of(const float* w, size_t step, bool rotated, size_t stride, size_t filters,
                             float* to) {
  size_t f = 0;
  for (; f + kFloatsOf<L> <= filters; f += kFloatsOf<L>)
    weight_kernels<S, L>(w + f * step, step, rotated, stride, to + f);
  for (; f < filters; ++f) weight_kernels<S, float>(w + f * step, step, rotated, stride, to + f);
}
template <typename L, typename S>
SLUICE_INLINE void kernel_gradient_of(const float* from, size_t filters, size_t stride, size_t step,
                                      float* w) {
  size_t f = 0;
  for (; f + kFloatsOf<L> <= filters; f += kFloatsOf<L>)
    kernel_gradients<S, L>(from + f, stride, step, w + f * step);
  for (; f < filters; ++f) kernel_gradients<S, float>(from + f, stride, step, w + f * step);
}

template <typename L>
SLUICE_INLINE void input_tile_by(Tiling tiling, const TileInputs& from, size_t channels, size_t stride,
                                 float* to) {
  if (tiling == Tiling::kPlain) return planes_of<L, ToInput<Plain>>(from, channels, stride, to);
  if (tiling == Tiling::kHalving) return planes_of<L, ToInput<Halving>>(from, channels, stride, to);
  planes_of<L, ToInput<Doubling>>(from, channels, stride, to);
}
template <typename L>
SLUICE_INLINE void output_tile_by(Tiling tiling, const float* from, size_t filters, size_t stride,
                                  const TileOutputs& to) {
  if (tiling == Tiling::kPlain) return output_of<L, Plain>(from, filters, stride, to);
  if (tiling == Tiling::kHalving) return output_of<L, Halving>(from, filters, stride, to);
  output_of<L, Doubling>(from, filters, stride, to);
}
template <typename L>
SLUICE_INLINE void gradient_tile_by(Tiling tiling, const TileInputs& from, size_t filters, size_t stride,
                                    float* to) {
  if (tiling == Tiling::kPlain) return planes_of<L, ToGradient<Plain>>(from, filters, stride, to);
  planes_of<L, ToGradient<Halving>>(from, filters, stride, to);
}
template <typename L>
SLUICE_INLINE void weight_tile_by(Tiling tiling, const float* w, size_t step, bool rotated, size_t stride,
                                  size_t filters, float* to) {
  if (tiling == Tiling::kPlain) return weight_of<L, Plain>(w, step, rotated, stride, filters, to);
  weight_of<L, Strided>(w, step, rotated, stride, filters, to);
}
template <typename L>
SLUICE_INLINE void kernel_gradient_tile_by(Tiling tiling, const float* from, size_t filters, size_t stride,
                                           size_t step, float* w) {
  if (tiling == Tiling::kPlain) return kernel_gradient_of<L, Plain>(from, filters, stride, step, w);
  kernel_gradient_of<L, Strided>(from, filters, stride, step, w);
}

}  // namespace

std::span<const PlaneGroup> groups_of(Tiling tiling) {
  static constexpr std::array<PlaneGroup, 1> kPlain = {{{0, 36, 0, 1}}};
  static constexpr std::array<PlaneGroup, 3> kStrided = {{{0, 25, 0, 1}, {25, 10, 25, 4}, {35, 1, 65, 16}}};
  if (tiling == Tiling::kPlain) return kPlain;
  return kStrided;
}

SLUICE_BY_LANES(input_tile,
                (Tiling tiling, const TileInputs& from, size_t channels, size_t stride, float* to),
                (tiling, from, channels, stride, to))
SLUICE_BY_LANES(output_tile,
                (Tiling tiling, const float* from, size_t filters, size_t stride, const TileOutputs& to),
                (tiling, from, filters, stride, to))
SLUICE_BY_LANES(gradient_tile,
                (Tiling tiling, const TileInputs& from, size_t filters, size_t stride, float* to),
                (tiling, from, filters, stride, to))
SLUICE_BY_LANES(weight_tile,
                (Tiling tiling, const float* w, size_t step, bool rotated, size_t stride, size_t filters,
                 float* to),
                (tiling, w, step, rotated, stride, filters, to))
SLUICE_BY_LANES(kernel_gradient_tile,
                (Tiling tiling, const float* from, size_t filters, size_t stride, size_t step, float* w),
                (tiling, from, filters, stride, step, w))

}  // namespace sluice::kernels
