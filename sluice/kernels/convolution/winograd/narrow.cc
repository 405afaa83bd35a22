// Winograd's filtering for few channels. A library call for products of 16 or 32 columns costs as much as the
// products, and needs large blocks of tiles, which only the L2 cache holds. Here a block has as few tiles as
// a micro-kernel has rows; while it is multiplied, the next one is prefetched.
#include <cstring>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/convolution/winograd/tiles.h"
#include "sluice/kernels/convolution/winograd/winograd.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

constexpr size_t kUnit = kNarrowUnit;

template <typename L>
constexpr size_t kVectors = kUnit / kFloatsOf<L>;
// The rows whose sums are in registers, for a product and for a sum of products.
template <typename L>
constexpr size_t kRows = kVectors<L> == 1 ? 14 : 6;
template <typename L>
constexpr size_t kSumRows = kVectors<L> == 1 ? 16 : 4;
// Returns the number of tiles in a block.
size_t rows_of_block() { return has_lanes16() ? kRows<Lanes16> : 2 * kRows<Lanes8>; }

// c [rows, kUnit] = a [rows, kUnit] b [kUnit, kUnit]; `rows` covers whole blocks. c may be a.
template <typename L>
SLUICE_INLINE void multiply_by(const float* a, size_t rows, const float* b, float* c) {
  constexpr size_t kSide = kVectors<L>, kCount = kRows<L>;
  for (size_t row = 0; row < rows; row += kCount, a += kCount * kUnit, c += kCount * kUnit) {
    L sums[kCount][kSide] = {};
#pragma GCC unroll 4
    for (size_t k = 0; k < kUnit; ++k) {
      L b_row[kSide];
#pragma GCC unroll 2
      for (size_t j = 0; j < kSide; ++j) load(b + k * kUnit + j * kFloatsOf<L>, b_row[j]);
#pragma GCC unroll 14
      for (size_t i = 0; i < kCount; ++i)
#pragma GCC unroll 2
        for (size_t j = 0; j < kSide; ++j) sums[i][j] += a[i * kUnit + k] * b_row[j];
    }
#pragma GCC unroll 14
    for (size_t i = 0; i < kCount; ++i)
#pragma GCC unroll 2
      for (size_t j = 0; j < kSide; ++j) store(sums[i][j], c + i * kUnit + j * kFloatsOf<L>);
  }
}
SLUICE_BY_LANES(multiply, (const float* a, size_t rows, const float* b, float* c), (a, rows, b, c))

// A product that is added to a sum [kUnit, kUnit]: aᵀ g, with kUnit channels of a and kUnit filters of g, in
// some planes of a block, with the first `rows` rows of each plane.
struct AddedProduct {
  const float* a;
  size_t channels;
  const float* g;
  size_t filters;
  int planes;
  size_t rows_of_plane, rows;
};

// With a constant kChannels a row's offset needs no register of its own.
template <typename L, size_t kChannels>
SLUICE_INLINE void add_product(const AddedProduct& p, float* sum) {
  constexpr size_t kSide = kVectors<L>, kCount = kSumRows<L>;
  for (size_t first = 0; first < kUnit; first += kCount, sum += kCount * kUnit) {
    L sums[kCount][kSide];
#pragma GCC unroll 16
    for (size_t i = 0; i < kCount; ++i)
#pragma GCC unroll 2
      for (size_t j = 0; j < kSide; ++j) load(sum + i * kUnit + j * kFloatsOf<L>, sums[i][j]);
    const float *a = p.a + first, *g = p.g;
    for (int plane = 0; plane < p.planes;
         ++plane, a += p.rows_of_plane * kChannels, g += p.rows_of_plane * p.filters)
      for (size_t row = 0; row < p.rows; ++row) {
        L g_row[kSide];
#pragma GCC unroll 2
        for (size_t j = 0; j < kSide; ++j) load(g + row * p.filters + j * kFloatsOf<L>, g_row[j]);
#pragma GCC unroll 16
        for (size_t i = 0; i < kCount; ++i)
#pragma GCC unroll 2
          for (size_t j = 0; j < kSide; ++j) sums[i][j] += a[row * kChannels + i] * g_row[j];
      }
#pragma GCC unroll 16
    for (size_t i = 0; i < kCount; ++i)
#pragma GCC unroll 2
      for (size_t j = 0; j < kSide; ++j) store(sums[i][j], sum + i * kUnit + j * kFloatsOf<L>);
  }
}

template <typename L>
SLUICE_INLINE void add_product_by(const AddedProduct& p, float* sum) {
  if (p.channels == kUnit) return add_product<L, kUnit>(p, sum);
  add_product<L, 2 * kUnit>(p, sum);
}
SLUICE_BY_LANES(add_product, (const AddedProduct& p, float* sum), (p, sum))

// The base of both directions: blocks of tiles, and weights as [filters / kUnit, kKernelPlanes, channels,
// kUnit].
class Narrow : public Winograd {
 public:
  explicit Narrow(const WinogradShape& shape)
      : tiles_(shape),
        channels_(static_cast<size_t>(shape.channels)),
        filters_(static_cast<size_t>(shape.filters)),
        planes_(static_cast<size_t>(tiles_.planes())),
        rows_(rows_of_block()) {}

 protected:
  size_t weight_floats() const { return kKernelPlanes * channels_ * filters_; }
  size_t weight_offset(size_t filter, size_t plane, size_t channel) const {
    return (filter * kKernelPlanes + plane * kUnit) * channels_ + channel * kUnit;
  }
  // Calls body(first tile, tiles) for the blocks of part number `part` of `parts`.
  template <typename Body>
  void for_blocks(size_t part, size_t parts, const Body& body) const {
    const auto count = static_cast<size_t>(tiles_.count());
    const size_t blocks = (count + rows_ - 1) / rows_;
    for (size_t block = blocks * part / parts; block < blocks * (part + 1) / parts; ++block)
      body(block * rows_, std::min(rows_, count - block * rows_));
  }
  // Calls body(kernel plane, its first plane of the tiles, its number of tile planes).
  template <typename Body>
  void for_planes(const Body& body) const {
    for (const PlaneGroup& group : groups_of(tiles_.shape().tiling))
      for (int i = 0; i < group.kernels; ++i)
        body(static_cast<size_t>(group.first_kernel + i),
             static_cast<size_t>(group.first + i * group.each) * rows_, group.each);
  }

  Tiles tiles_;
  size_t channels_, filters_, planes_, rows_;
};

// A convolution of kUnit channels.
class NarrowConvolution : public Narrow {
 public:
  using Narrow::Narrow;
  base::Status run(const float* x, const float* w, float* y) const override {
    const Scratch weights(weight_floats() * sizeof(float));
    transform_weights(w, weights.floats());
    const auto parts = static_cast<size_t>(kMaxPartsPerThread * threads_of_a_call());
    parallel_for(parts, [&](size_t part) {
      const size_t bytes = planes_ * rows_ * kUnit * sizeof(float);
      const bool in_place = filters_ == kUnit;  // because the input is multiplied only once
      const Scratch input(bytes), output(in_place ? 0 : bytes);
      for_blocks(part, parts, [&](size_t first, size_t count) {
        run_block(first, count, x, weights.floats(), y, input.floats(),
                  in_place ? input.floats() : output.floats());
      });
    });
    return {};
  }

 private:
  void transform_weights(const float* w, float* to) const {
    const WinogradShape& shape = tiles_.shape();
    const size_t filter_step = shape.filter_step(), channel_step = shape.channel_step();
    parallel_for(filters_ / kUnit, [&](size_t i) {
      const size_t filter = i * kUnit;
      for (size_t channel = 0; channel < channels_; ++channel)
        weight_tile(shape.tiling, w + filter * filter_step + channel * channel_step, filter_step,
                    shape.rotated, channels_ * kUnit, kUnit, to + weight_offset(filter, 0, channel));
    });
  }

  void run_block(size_t first, size_t count, const float* x, const float* weights, float* y, float* input,
                 float* output) const {
    for (size_t i = 0; i < count; ++i)
      tiles_.transform_input(x, static_cast<int64_t>(first + i), rows_, input + i * kUnit);
    for (size_t filter = 0; filter < filters_; filter += kUnit) {
      for_planes([&](size_t kernel, size_t row, int planes) {
        multiply(input + row * kUnit, static_cast<size_t>(planes) * rows_,
                 weights + weight_offset(filter, kernel, 0), output + row * kUnit);
        if (filter > 0) return;
        if (kernel < rows_)
          tiles_.prefetch_input(x, static_cast<int64_t>(first + rows_ + kernel));
        else if (kernel < 2 * rows_)
          tiles_.prefetch_output(y, static_cast<int64_t>(first + kernel - rows_));
      });
      for (size_t i = 0; i < count; ++i)
        tiles_.transform_output(output + i * kUnit, static_cast<int64_t>(first + i), rows_,
                                static_cast<int64_t>(filter), kUnit, y);
    }
  }
};

class NarrowGradient : public Narrow {
 public:
  using Narrow::Narrow;
  base::Status run(const float* x, const float* y, float* w) const override {
    const WinogradShape& shape = tiles_.shape();
    // The partial sums of each part are written and read one more time.
    const auto parts = static_cast<size_t>(
        parts_of_a_call(tiles_.count() * static_cast<int64_t>(planes_ * (channels_ + filters_)) /
                        static_cast<int64_t>(8 * weight_floats())));
    const Scratch sum(parts * weight_floats() * sizeof(float));
    const std::vector<float*> sums = sum_buffers(parts, weight_floats(), nullptr, sum.floats());
    parallel_for(parts, [&](size_t part) {
      const Scratch input(planes_ * rows_ * channels_ * sizeof(float)),
          gradient(planes_ * rows_ * filters_ * sizeof(float));
      std::memset(sums[part], 0, weight_floats() * sizeof(float));
      for_blocks(part, parts, [&](size_t first, size_t count) {
        add_block(first, count, x, y, input.floats(), gradient.floats(), sums[part]);
      });
    });
    add_partial_sums(sums, weight_floats());
    parallel_for(filters_ / kUnit, [&](size_t i) {
      const size_t filter = i * kUnit;
      for (size_t channel = 0; channel < channels_; ++channel)
        kernel_gradient_tile(shape.tiling, sums[0] + weight_offset(filter, 0, channel), kUnit,
                             channels_ * kUnit, 9 * channels_, w + 9 * (filter * channels_ + channel));
    });
    return {};
  }

 private:
  void add_block(size_t first, size_t count, const float* x, const float* y, float* input, float* gradient,
                 float* sum) const {
    for (size_t i = 0; i < count; ++i) {
      const auto tile = static_cast<int64_t>(first + i);
      tiles_.transform_input(x, tile, rows_, input + i * channels_);
      tiles_.transform_gradient(y, tile, rows_, gradient + i * filters_);
    }
    for_planes([&](size_t kernel, size_t row, int planes) {
      for (size_t filter = 0; filter < filters_; filter += kUnit)
        for (size_t channel = 0; channel < channels_; channel += kUnit)
          add_product({input + row * channels_ + channel, channels_, gradient + row * filters_ + filter,
                       filters_, planes, rows_, count},
                      sum + weight_offset(filter, kernel, channel));
      const auto next = static_cast<int64_t>(first + rows_ + kernel % rows_);
      if (kernel < rows_)
        tiles_.prefetch_input(x, next);
      else if (kernel < 2 * rows_)
        tiles_.prefetch_output(y, next);
    });
  }
};

}  // namespace

std::unique_ptr<Winograd> make_narrow_winograd(const WinogradShape& shape) {
  return std::make_unique<NarrowConvolution>(shape);
}

std::unique_ptr<Winograd> make_narrow_winograd_gradient(const WinogradShape& shape) {
  return std::make_unique<NarrowGradient>(shape);
}

}  // namespace sluice::kernels
