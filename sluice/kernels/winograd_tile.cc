#include "sluice/kernels/winograd_tile.h"

#include <cstring>

#include "sluice/kernels/each_cpu.h"

namespace sluice::kernels {
namespace {

constexpr int kOut = kTileOut, kIn = kTileIn, kPoints = kTilePoints;

// Channels that are worked on together; what is left of them goes one by one.
constexpr size_t kLanes = 16;
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

#define SLUICE_INLINE inline __attribute__((always_inline))

using Inputs = TileInputs;
using Outputs = TileOutputs;

// Bᵀ x, Aᵀ x and G x of Lavin & Gray for the points 0, ±1, ±2, ∞; `step` between the elements of the vectors.
// T: float or Lanes.
template <typename T>
SLUICE_INLINE void input_points(const T* x, int step, T* to) {
  const T x0 = x[0], x1 = x[step], x2 = x[2 * step], x3 = x[3 * step], x4 = x[4 * step], x5 = x[5 * step];
  to[0] = 4 * x0 - 5 * x2 + x4;
  to[step] = x4 + x3 - 4 * (x1 + x2);
  to[2 * step] = x4 - x3 + 4 * (x1 - x2);
  to[3 * step] = x4 - x2 + 2 * (x3 - x1);
  to[4 * step] = x4 - x2 - 2 * (x3 - x1);
  to[5 * step] = 4 * x1 - 5 * x3 + x5;
}
template <typename T>
SLUICE_INLINE void output_points(const T* m, int step, T* to, int to_step) {
  const T sum = m[step] + m[2 * step], difference = m[step] - m[2 * step];
  const T far_sum = m[3 * step] + m[4 * step], far_difference = m[3 * step] - m[4 * step];
  to[0] = m[0] + sum + far_sum;
  to[to_step] = difference + 2 * far_difference;
  to[2 * to_step] = sum + 4 * far_sum;
  to[3 * to_step] = difference + 8 * far_difference + m[5 * step];
}
template <typename T>
SLUICE_INLINE void weight_points(const T* g, int step, T* to, int to_step) {
  const T ends = g[0] + g[2 * step], far_ends = g[0] + 4 * g[2 * step];
  to[0] = g[0] * (1.f / 4);
  to[to_step] = (ends + g[step]) * (-1.f / 6);
  to[2 * to_step] = (ends - g[step]) * (-1.f / 6);
  to[3 * to_step] = (far_ends + 2 * g[step]) * (1.f / 24);
  to[4 * to_step] = (far_ends - 2 * g[step]) * (1.f / 24);
  to[5 * to_step] = g[2 * step];
}

template <typename T>
SLUICE_INLINE void load(const float* from, T& value) {
  std::memcpy(&value, from, sizeof value);
}
template <typename T>
SLUICE_INLINE void store(const T& value, float* to) {
  std::memcpy(to, &value, sizeof value);
}

// Bᵀ d B of the channels from c on; point p goes to to[p * stride + c].
template <typename T>
SLUICE_INLINE void input_channels(const Inputs& from, size_t c, size_t stride, float* to) {
  T d[kPoints];
  for (size_t i = 0; i < kPoints; ++i) load(from[i] + c, d[i]);
  for (int i = 0; i < kIn; ++i) input_points(d + i, kIn, d + i);
  for (int i = 0; i < kIn; ++i) input_points(d + i * kIn, 1, d + i * kIn);
  for (size_t i = 0; i < kPoints; ++i) store(d[i], to + i * stride + c);
}

// Aᵀ m A of the filters from f on.
template <typename T>
SLUICE_INLINE void output_filters(const float* from, size_t f, size_t stride, const Outputs& to) {
  T m[kPoints], half[kOut * kIn], y[kOut * kOut];
  for (size_t i = 0; i < kPoints; ++i) load(from + i * stride + f, m[i]);
  for (int i = 0; i < kIn; ++i) output_points(m + i, kIn, half + i, kIn);
  for (int i = 0; i < kOut; ++i) output_points(half + i * kIn, 1, y + i * kOut, 1);
  for (size_t i = 0; i < kOut * kOut; ++i) store(y[i], to[i] + f);
}

// G g Gᵀ of as many kernels as T has lanes, `step` floats apart; point p goes to to[p * stride].
template <typename T>
SLUICE_INLINE void weight_kernels(const float* w, size_t step, bool turned, size_t stride, float* to) {
  constexpr size_t kCount = sizeof(T) / sizeof(float);
  float gathered[9][kCount];
  for (size_t lane = 0; lane < kCount; ++lane)
    for (size_t i = 0; i < 9; ++i) gathered[turned ? 8 - i : i][lane] = w[lane * step + i];
  T g[9], half[kIn * 3], points[kPoints];
  for (size_t i = 0; i < 9; ++i) load(gathered[i], g[i]);
  for (int i = 0; i < 3; ++i) weight_points(g + i, 3, half + i, 3);
  for (int i = 0; i < kIn; ++i) weight_points(half + i * 3, 1, points + i * kIn, 1);
  for (size_t i = 0; i < kPoints; ++i) store(points[i], to + i * stride);
}

// A y Aᵀ of the filters from f on, y a tile of gradients.
template <typename T>
SLUICE_INLINE void gradient_points(const T* y, int step, T* to, int to_step) {
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
SLUICE_INLINE void gradient_filters(const std::array<const float*, kOut * kOut>& from, size_t f,
                                    size_t stride, float* to) {
  T y[kOut * kOut], half[kIn * kOut], points[kPoints];
  for (size_t i = 0; i < kOut * kOut; ++i) load(from[i] + f, y[i]);
  for (int i = 0; i < kOut; ++i) gradient_points(y + i, kOut, half + i, kOut);
  for (int i = 0; i < kIn; ++i) gradient_points(half + i * kOut, 1, points + i * kIn, 1);
  for (size_t i = 0; i < kPoints; ++i) store(points[i], to + i * stride + f);
}

// Gᵀ m G of as many kernels as T has lanes, into kernels that lie `step` floats apart.
template <typename T>
SLUICE_INLINE void kernel_points(const T* m, int step, T* to, int to_step) {
  const T near = (m[step] + m[2 * step]) * (1.f / 6), far = m[3 * step] + m[4 * step];
  to[0] = m[0] * (1.f / 4) - near + far * (1.f / 24);
  to[to_step] = (m[2 * step] - m[step]) * (1.f / 6) + (m[3 * step] - m[4 * step]) * (1.f / 12);
  to[2 * to_step] = far * (1.f / 6) - near + m[5 * step];
}
template <typename T>
SLUICE_INLINE void kernel_gradients(const float* from, size_t stride, size_t step, float* w) {
  constexpr size_t kCount = sizeof(T) / sizeof(float);
  T m[kPoints], half[3 * kIn], g[9];
  for (size_t i = 0; i < kPoints; ++i) load(from + i * stride, m[i]);
  for (int i = 0; i < kIn; ++i) kernel_points(m + i, kIn, half + i, kIn);
  for (int i = 0; i < 3; ++i) kernel_points(half + i * kIn, 1, g + i * 3, 1);
  float spread[9][kCount];
  for (size_t i = 0; i < 9; ++i) store(g[i], spread[i]);
  for (size_t lane = 0; lane < kCount; ++lane)
    for (size_t i = 0; i < 9; ++i) w[lane * step + i] = spread[i][lane];
}

}  // namespace

SLUICE_EACH_CPU
void input_tile(const TileInputs& from, size_t channels, size_t stride, float* to) {
  size_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) input_channels<Lanes>(from, c, stride, to);
  for (; c < channels; ++c) input_channels<float>(from, c, stride, to);
}

SLUICE_EACH_CPU
void output_tile(const float* from, size_t filters, size_t stride, const TileOutputs& to) {
  size_t f = 0;
  for (; f + kLanes <= filters; f += kLanes) output_filters<Lanes>(from, f, stride, to);
  for (; f < filters; ++f) output_filters<float>(from, f, stride, to);
}

SLUICE_EACH_CPU
void weight_tile(const float* w, size_t step, bool turned, size_t stride, size_t filters, float* to) {
  size_t f = 0;
  for (; f + kLanes <= filters; f += kLanes)
    weight_kernels<Lanes>(w + f * step, step, turned, stride, to + f);
  for (; f < filters; ++f) weight_kernels<float>(w + f * step, step, turned, stride, to + f);
}

SLUICE_EACH_CPU
void gradient_tile(const TileGradients& from, size_t filters, size_t stride, float* to) {
  size_t f = 0;
  for (; f + kLanes <= filters; f += kLanes) gradient_filters<Lanes>(from, f, stride, to);
  for (; f < filters; ++f) gradient_filters<float>(from, f, stride, to);
}

SLUICE_EACH_CPU
void kernel_gradient_tile(const float* from, size_t filters, size_t stride, size_t step, float* w) {
  size_t f = 0;
  for (; f + kLanes <= filters; f += kLanes) kernel_gradients<Lanes>(from + f, stride, step, w + f * step);
  for (; f < filters; ++f) kernel_gradients<float>(from + f, stride, step, w + f * step);
}

}  // namespace sluice::kernels
