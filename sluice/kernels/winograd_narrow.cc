// Winograd's filtering for few channels. A call of the library for products of 16 or 32 columns costs as much
// as they do, and it wants large blocks of tiles, which only the second cache holds. Here a block is as many
// tiles as a kernel of registers has rows; while it is multiplied, the memory is asked for the next one.
#include <cstring>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/each_cpu.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/partial_sums.h"
#include "sluice/kernels/threads.h"
#include "sluice/kernels/tiles.h"
#include "sluice/kernels/winograd.h"

namespace sluice::kernels {
namespace {

// With more the library is faster (measured).
constexpr int64_t kMostChannels = kLanes, kMostGradientChannels = 32, kMostFilters = 32;
// Tiles of a block, whose sums are in registers together.
constexpr size_t kRows = 14;
static_assert(2 * kRows <= kKernelPlanes, "one tile is asked for at each plane");

bool is_narrow(const WinogradShape& shape, int64_t most_channels) {
  const auto fits = [](int64_t channels, int64_t most) { return channels % kLanes == 0 && channels <= most; };
  return lanes_are_registers() && fits(shape.channels, most_channels) && fits(shape.filters, kMostFilters) &&
         Tiles(shape).outweigh_weights(kWeightsOfTile);
}

// c [rows, kLanes] = a [rows, kLanes] b [kLanes, kLanes]; rows: a multiple of kRows. c may be a.
SLUICE_EACH_CPU
void multiply(const float* a, size_t rows, const float* b, float* c) {
  for (size_t row = 0; row < rows; row += kRows, a += kRows * kLanes, c += kRows * kLanes) {
    Lanes sums[kRows] = {};
#pragma GCC unroll 4
    for (size_t k = 0; k < kLanes; ++k) {
      Lanes b_row;
      load(b + k * kLanes, b_row);
#pragma GCC unroll 14
      for (size_t i = 0; i < kRows; ++i) sums[i] += a[i * kLanes + k] * b_row;
    }
#pragma GCC unroll 14
    for (size_t i = 0; i < kRows; ++i) store(sums[i], c + i * kLanes);
  }
}

// With kChannels known a row's place needs no register of its own.
template <size_t kChannels>
SLUICE_INLINE void add_products(const float* a, const float* g, size_t filters, int planes, size_t rows,
                                float* sum) {
  Lanes sums[kLanes];
#pragma GCC unroll 16
  for (size_t i = 0; i < kLanes; ++i) load(sum + i * kLanes, sums[i]);
  for (int plane = 0; plane < planes; ++plane, a += kRows * kChannels, g += kRows * filters)
    for (size_t row = 0; row < rows; ++row) {
      Lanes g_row;
      load(g + row * filters, g_row);
#pragma GCC unroll 16
      for (size_t i = 0; i < kLanes; ++i) sums[i] += a[row * kChannels + i] * g_row;
    }
#pragma GCC unroll 16
  for (size_t i = 0; i < kLanes; ++i) store(sums[i], sum + i * kLanes);
}

// sum [kLanes, kLanes] += aᵀ g, of kLanes of a's channels and as many filters, in some planes of kRows rows,
// the first `rows` of each.
SLUICE_EACH_CPU
void add_products(const float* a, size_t channels, const float* g, size_t filters, int planes, size_t rows,
                  float* sum) {
  if (channels == kLanes) return add_products<kLanes>(a, g, filters, planes, rows, sum);
  add_products<2 * kLanes>(a, g, filters, planes, rows, sum);
}

// What both directions share: blocks of tiles, and weights that lie as [filters / kLanes, kKernelPlanes,
// channels, kLanes].
class Narrow : public Winograd {
 public:
  explicit Narrow(const WinogradShape& shape)
      : tiles_(shape),
        channels_(static_cast<size_t>(shape.channels)),
        filters_(static_cast<size_t>(shape.filters)),
        planes_(static_cast<size_t>(tiles_.planes())) {}

 protected:
  size_t weight_floats() const { return kKernelPlanes * channels_ * filters_; }
  size_t weight_place(size_t filter, size_t plane, size_t channel) const {
    return (filter * kKernelPlanes + plane * kLanes) * channels_ + channel * kLanes;
  }
  // body(first tile, tiles) for the blocks of a part, of so many parts.
  template <typename Body>
  void for_blocks(size_t part, size_t parts, const Body& body) const {
    const auto count = static_cast<size_t>(tiles_.count());
    const size_t blocks = (count + kRows - 1) / kRows;
    for (size_t block = blocks * part / parts; block < blocks * (part + 1) / parts; ++block)
      body(block * kRows, std::min(kRows, count - block * kRows));
  }
  // body(kernel plane, its first plane of the tiles, as many of these).
  template <typename Body>
  void for_planes(const Body& body) const {
    for (const PlaneGroup& group : groups_of(tiles_.shape().tiling))
      for (int i = 0; i < group.kernels; ++i)
        body(static_cast<size_t>(group.first_kernel + i),
             static_cast<size_t>(group.first + i * group.each) * kRows, group.each);
  }

  Tiles tiles_;
  size_t channels_, filters_, planes_;
};

// Of kLanes channels.
class NarrowConvolution : public Narrow {
 public:
  using Narrow::Narrow;
  base::Status run(const float* x, const float* w, float* y) const override {
    const Scratch weights(weight_floats() * sizeof(float));
    transform_weights(w, weights.floats());
    const auto parts = static_cast<size_t>(kMostPartsOfThread * threads_of_a_call());
    parallel_for(parts, [&](size_t part) {
      const size_t bytes = planes_ * kRows * kLanes * sizeof(float);
      const bool in_place = filters_ == kLanes;  // where the input is multiplied once
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
    parallel_for(filters_ / kLanes, [&](size_t i) {
      const size_t filter = i * kLanes;
      for (size_t channel = 0; channel < channels_; ++channel)
        weight_tile(shape.tiling, w + filter * filter_step + channel * channel_step, filter_step,
                    shape.turned, channels_ * kLanes, kLanes, to + weight_place(filter, 0, channel));
    });
  }

  void run_block(size_t first, size_t count, const float* x, const float* weights, float* y, float* input,
                 float* output) const {
    for (size_t i = 0; i < count; ++i)
      tiles_.transform_input(x, static_cast<int64_t>(first + i), kRows, input + i * kLanes);
    for (size_t filter = 0; filter < filters_; filter += kLanes) {
      for_planes([&](size_t kernel, size_t row, int planes) {
        multiply(input + row * kLanes, static_cast<size_t>(planes) * kRows,
                 weights + weight_place(filter, kernel, 0), output + row * kLanes);
        if (filter > 0) return;
        if (kernel < kRows)
          tiles_.fetch_input(x, static_cast<int64_t>(first + kRows + kernel));
        else if (kernel < 2 * kRows)
          tiles_.fetch_output(y, static_cast<int64_t>(first + kernel - kRows));
      });
      for (size_t i = 0; i < count; ++i)
        tiles_.transform_output(output + i * kLanes, static_cast<int64_t>(first + i), kRows,
                                static_cast<int64_t>(filter), kLanes, y);
    }
  }
};

class NarrowGradient : public Narrow {
 public:
  using Narrow::Narrow;
  base::Status run(const float* x, const float* y, float* w) const override {
    const WinogradShape& shape = tiles_.shape();
    // Each part's sums are read and written once more.
    const auto parts = static_cast<size_t>(
        parts_of_a_call(tiles_.count() * static_cast<int64_t>(planes_ * (channels_ + filters_)) /
                        static_cast<int64_t>(8 * weight_floats())));
    const Scratch sum(parts * weight_floats() * sizeof(float));
    const std::vector<float*> sums = places_of_sums(parts, weight_floats(), nullptr, sum.floats());
    parallel_for(parts, [&](size_t part) {
      const Scratch input(planes_ * kRows * channels_ * sizeof(float)),
          gradient(planes_ * kRows * filters_ * sizeof(float));
      std::memset(sums[part], 0, weight_floats() * sizeof(float));
      for_blocks(part, parts, [&](size_t first, size_t count) {
        add_block(first, count, x, y, input.floats(), gradient.floats(), sums[part]);
      });
    });
    add_partial_sums(sums, weight_floats());
    parallel_for(filters_ / kLanes, [&](size_t i) {
      const size_t filter = i * kLanes;
      for (size_t channel = 0; channel < channels_; ++channel)
        kernel_gradient_tile(shape.tiling, sums[0] + weight_place(filter, 0, channel), kLanes,
                             channels_ * kLanes, 9 * channels_, w + 9 * (filter * channels_ + channel));
    });
    return {};
  }

 private:
  void add_block(size_t first, size_t count, const float* x, const float* y, float* input, float* gradient,
                 float* sum) const {
    for (size_t i = 0; i < count; ++i) {
      const auto tile = static_cast<int64_t>(first + i);
      tiles_.transform_input(x, tile, kRows, input + i * channels_);
      tiles_.transform_gradient(y, tile, kRows, gradient + i * filters_);
    }
    for_planes([&](size_t kernel, size_t row, int planes) {
      for (size_t filter = 0; filter < filters_; filter += kLanes)
        for (size_t channel = 0; channel < channels_; channel += kLanes)
          add_products(input + row * channels_ + channel, channels_, gradient + row * filters_ + filter,
                       filters_, planes, count, sum + weight_place(filter, kernel, channel));
      const auto next = static_cast<int64_t>(first + kRows + kernel % kRows);
      if (kernel < kRows)
        tiles_.fetch_input(x, next);
      else if (kernel < 2 * kRows)
        tiles_.fetch_output(y, next);
    });
  }
};

}  // namespace

std::unique_ptr<Winograd> make_narrow_winograd(const WinogradShape& shape) {
  return is_narrow(shape, kMostChannels) ? std::make_unique<NarrowConvolution>(shape) : nullptr;
}

std::unique_ptr<Winograd> make_narrow_winograd_gradient(const WinogradShape& shape) {
  return is_narrow(shape, kMostGradientChannels) ? std::make_unique<NarrowGradient>(shape) : nullptr;
}

}  // namespace sluice::kernels
