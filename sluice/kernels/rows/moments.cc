#include "sluice/kernels/rows/moments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/each_cpu.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

// The elements of a block: few enough that its second read comes from the cache.
constexpr size_t kBlock = 32 << 10;

size_t rows_of_block(size_t channels) { return std::max<size_t>(8, kBlock / std::max<size_t>(1, channels)); }

// Returns how many rows are summed side by side as if they were one: rows of few channels would be loops of
// only a few steps. The number of rows is a multiple of the result.
size_t rows_side_by_side(const Rows& size) {
  size_t many = 1;
  while (2 * many * std::max<size_t>(1, size.channels) <= 256 && size.rows % (2 * many) == 0) many *= 2;
  return many;
}

// The rows that are added to each other before they are added to the sums, which are in memory.
constexpr size_t kRowsAtOnce = 4;

// Calls body(row, count) for all rows: count is a constant, kRowsAtOnce or 1.
template <typename Body>
SLUICE_INLINE void for_rows(size_t rows, const Body& body) {
  size_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) body(r, std::integral_constant<size_t, kRowsAtOnce>());
  for (; r < rows; ++r) body(r, std::integral_constant<size_t, 1>());
}

SLUICE_INLINE void add_up_rows(const float* x, size_t rows, size_t channels, float* __restrict sums) {
  std::fill(sums, sums + channels, 0.f);
  for_rows(rows, [=](size_t r, auto count) {
    const float* const row = x + r * channels;
    for (size_t c = 0; c < channels; ++c) {
      float sum = row[c];
      for (size_t k = 1; k < count; ++k) sum += row[k * channels + c];
      sums[c] += sum;
    }
  });
}

// Computes a mean, which is inexact by rounding, and the sums of the distances from it and of their squares.
SLUICE_EACH_CPU
void block_moments(const float* x, size_t rows, size_t channels, float* __restrict mean,
                   float* __restrict squares, float* __restrict distances) {
  std::fill(squares, squares + channels, 0.f);
  std::fill(distances, distances + channels, 0.f);
  add_up_rows(x, rows, channels, mean);
  const float scale = 1.f / static_cast<float>(rows);
  for (size_t c = 0; c < channels; ++c) mean[c] *= scale;
  for_rows(rows, [=](size_t r, auto count) {
    const float* const row = x + r * channels;
    for (size_t c = 0; c < channels; ++c) {
      float sum = 0, square = 0;
      for (size_t k = 0; k < count; ++k) {
        const float distance = row[k * channels + c] - mean[c];
        sum += distance;
        square += distance * distance;
      }
      distances[c] += sum;
      squares[c] += square;
    }
  });
}

// The code between two loads is longer than the CPU looks ahead, so it prefetches.
SLUICE_INLINE void prefetch_rows(const float* rows, size_t count) {
  for (size_t i = 0; i < count; i += 16) __builtin_prefetch(rows + i);
}

SLUICE_EACH_CPU_256
void gated_block_sums(const float* grad_y, const float* x, const float* __restrict mean,
                      const float* __restrict factor, const float* __restrict bias, size_t rows,
                      size_t channels, float* __restrict sums, float* __restrict products) {
  std::fill(sums, sums + channels, 0.f);
  std::fill(products, products + channels, 0.f);
  for_rows(rows, [=](size_t r, auto count) {
    const float *const row = x + r * channels, *const grad_row = grad_y + r * channels;
    const size_t next = r + count, asked = std::min(kRowsAtOnce, rows - next) * channels;
    prefetch_rows(x + next * channels, asked);
    prefetch_rows(grad_y + next * channels, asked);
    for (size_t c = 0; c < channels; ++c) {
      float sum = 0, product = 0;
      for (size_t k = 0; k < count; ++k) {
        const float centered = row[k * channels + c] - mean[c];
        const float value = passed(grad_row[k * channels + c], centered * factor[c] + bias[c]);
        sum += value;
        product += value * centered;
      }
      sums[c] += sum;
      products[c] += product;
    }
  });
}

SLUICE_EACH_CPU
void block_sums(const float* grad_y, const float* x, const float* __restrict mean, size_t rows,
                size_t channels, float* __restrict sums, float* __restrict products) {
  std::fill(sums, sums + channels, 0.f);
  std::fill(products, products + channels, 0.f);
  for_rows(rows, [=](size_t r, auto count) {
    const float *const row = x + r * channels, *const grad_row = grad_y + r * channels;
    for (size_t c = 0; c < channels; ++c) {
      float sum = 0, product = 0;
      for (size_t k = 0; k < count; ++k) {
        const float value = grad_row[k * channels + c];
        sum += value;
        product += value * (row[k * channels + c] - mean[c]);
      }
      sums[c] += sum;
      products[c] += product;
    }
  });
}

SLUICE_EACH_CPU
void plain_block_sums(const float* x, size_t rows, size_t channels, float* sums) {
  add_up_rows(x, rows, channels, sums);
}

// Calls body(block, first row, rows) for all blocks, on the threads of a call.
template <typename Body>
void for_blocks(size_t rows, size_t block, const Body& body) {
  parallel_for((rows + block - 1) / block, [&](size_t i) {
    const size_t first = i * block;
    body(i, first, std::min(block, rows - first));
  });
}

// The layout of the blocks' results: block after block, the sums of each of the rows side by side.
struct Parts {
  size_t rows, block;  // rows that were summed one after the other
  size_t side_by_side, channels;

  size_t blocks() const { return (rows + block - 1) / block; }
  size_t count() const { return blocks() * side_by_side; }
  size_t rows_of_part(size_t i) const { return std::min(block, rows - i / side_by_side * block); }
};

Parts parts_of(const Rows& size) {
  const size_t many = rows_side_by_side(size);
  return {size.rows / many, rows_of_block(size.channels * many), many, size.channels};
}

// Joins the blocks' results for at most kElementsOfJoin channels. Chan, Golub & LeVeque (1983).
SLUICE_EACH_CPU
void join_moments(const Parts& all, const float* means, const float* squares, const float* distances,
                  size_t channels, float* __restrict mean, float* __restrict variance) {
  std::array<double, kElementsOfJoin> joined{}, joined_squares{};
  double before = 0;
  for (size_t i = 0; i < all.count(); ++i) {
    const auto count = static_cast<double>(all.rows_of_part(i));
    const double to_mean = 1 / count, share = count / (before + count), weight = before * share;
    const size_t row = i * all.channels;
    for (size_t c = 0; c < channels; ++c) {
      const double inexact = distances[row + c] * to_mean;
      const double away = means[row + c] + inexact - joined[c];
      joined[c] += away * share;
      joined_squares[c] += squares[row + c] - inexact * inexact * count + away * away * weight;
    }
    before += count;
  }
  for (size_t c = 0; c < channels; ++c) {
    mean[c] = static_cast<float>(joined[c]);
    variance[c] = static_cast<float>(
        std::max(0.0, joined_squares[c] / static_cast<double>(all.rows * all.side_by_side)));
  }
}

// Several sums in parallel, for registers, and the floats of a block, so that small numbers are not lost.
constexpr size_t kSideBySide = 64, kFloatsOfBlock = size_t{1} << 13;
SLUICE_EACH_CPU
float sum_of_block(const float* x, size_t count) {
  std::array<float, kSideBySide> sums{};
  size_t i = 0;
  for (; i + kSideBySide <= count; i += kSideBySide)
    for (size_t j = 0; j < kSideBySide; ++j) sums[j] += x[i + j];
  for (size_t j = 0; i < count; ++i, ++j) sums[j] += x[i];
  for (size_t half = kSideBySide / 2; half > 0; half /= 2)
    for (size_t j = 0; j < half; ++j) sums[j] += sums[j + half];
  return sums[0];
}

}  // namespace

void moments(const Rows& size, const float* x, float* mean, float* variance) {
  const Parts all = parts_of(size);
  const size_t channels = size.channels;
  const size_t part = all.count() * channels, width = all.side_by_side * channels;
  float *means, *squares, *distances;
  const ScratchArrays found({{means, part}, {squares, part}, {distances, part}});
  for_blocks(all.rows, all.block, [&](size_t i, size_t first, size_t count) {
    block_moments(x + first * width, count, width, means + i * width, squares + i * width,
                  distances + i * width);
  });
  for_joins(channels, [&](size_t first, size_t count) {
    join_moments(all, means + first, squares + first, distances + first, count, mean + first,
                 variance + first);
  });
}

void channel_sums(const Rows& size, const float* grad_y, const float* x, const ChannelScales& scales,
                  bool gated, float* sum, float* product) {
  const Parts all = parts_of(size);
  const size_t channels = size.channels;
  const size_t part = all.count() * channels, width = all.side_by_side * channels;
  float *sums, *products;
  const ScratchArrays found({{sums, part}, {products, part}});
  const RepeatedChannels<3> numbers(channels, all.side_by_side);
  numbers.fill([&](size_t c) {
    return std::array{scales.mean[c], gated ? scales.inverse[c] * scales.weight[c] : 0.f,
                      gated ? scales.bias[c] : 0.f};
  });
  for_blocks(all.rows, all.block, [&](size_t i, size_t first, size_t count) {
    const float *const grad_block = grad_y + first * width, *const x_block = x + first * width;
    if (gated)
      gated_block_sums(grad_block, x_block, numbers.at(0, 0), numbers.at(1, 0), numbers.at(2, 0), count,
                       width, sums + i * width, products + i * width);
    else
      block_sums(grad_block, x_block, numbers.at(0, 0), count, width, sums + i * width, products + i * width);
  });
  for_joins(channels, [&](size_t first, size_t count) {
    join_sums(all.count(), sums + first, channels, count, sum + first);
    join_sums(all.count(), products + first, channels, count, product + first);
    for (size_t c = first; c < first + count; ++c) product[c] *= scales.inverse[c];
  });
}

void sum_of_rows(const Rows& size, const float* x, float* sum) {
  const Parts all = parts_of(size);
  const size_t width = all.side_by_side * size.channels;
  const Scratch sums(all.count() * size.channels * sizeof(float));
  for_blocks(all.rows, all.block, [&](size_t i, size_t first, size_t count) {
    plain_block_sums(x + first * width, count, width, sums.floats() + i * width);
  });
  for_joins(size.channels, [&](size_t first, size_t count) {
    join_sums(all.count(), sums.floats() + first, size.channels, count, sum + first);
  });
}

void sum_of_planes(size_t images, size_t channels, size_t pixels, const float* x, float* sum) {
  const size_t blocks = (pixels + kFloatsOfBlock - 1) / kFloatsOfBlock, count = images * channels * blocks;
  const Scratch sums(count * sizeof(float));  // in the order of x
  parallel_pieces(count, std::max(size_t{1}, kFloatsOfBlock / pixels), [&](size_t begin, size_t some) {
    for (size_t i = begin; i < begin + some; ++i) {
      const size_t first = i % blocks * kFloatsOfBlock;
      sums.floats()[i] =
          sum_of_block(x + i / blocks * pixels + first, std::min(kFloatsOfBlock, pixels - first));
    }
  });
  for (size_t c = 0; c < channels; ++c) {
    double joined = 0;
    for (size_t image = 0; image < images; ++image)
      for (size_t block = 0; block < blocks; ++block)
        joined += sums.floats()[(image * channels + c) * blocks + block];
    sum[c] = static_cast<float>(joined);
  }
}

base::Status call_moments(const Call& call) {
  SLUICE_OK(call.takes({{2, 3}, {5, 5}}));
  SLUICE_TRY(const Tensor x, call.filled_operand(0, "x", 2));
  SLUICE_TRY(const float eps, scalar_operand(call, 1, "eps"));
  SLUICE_TRY(float* const mean, channels_result(call, 0, "mean", x));
  SLUICE_TRY(float* const variance, channels_result(call, 1, "variance", x));
  SLUICE_TRY(float* const inverse, channels_result(call, 2, "inverse", x));
  float momentum = 0, *old_mean = nullptr, *old_variance = nullptr, *new_mean = nullptr,
        *new_variance = nullptr;
  const bool running = call.num_operands() == 5;
  if (running) {
    SLUICE_TRY(momentum, scalar_operand(call, 2, "momentum"));
    SLUICE_TRY(old_mean, channels_operand(call, 3, "running mean", x));
    SLUICE_TRY(old_variance, channels_operand(call, 4, "running variance", x));
    SLUICE_TRY(new_mean, channels_result(call, 3, "running mean", x));
    SLUICE_TRY(new_variance, channels_result(call, 4, "running variance", x));
  }
  const Rows size = rows_of(x);
  const auto [rows, channels] = size;
  moments(size, x.data, mean, variance);
  for (size_t c = 0; c < channels; ++c) inverse[c] = 1.f / std::sqrt(variance[c] + eps);
  if (!running) return {};

  const float kept = 1.f - momentum;
  const float unbiased = static_cast<float>(rows) / (static_cast<float>(rows) - 1.f);
  for (size_t c = 0; c < channels; ++c) {
    new_mean[c] = old_mean[c] * kept + mean[c] * momentum;
    new_variance[c] = old_variance[c] * kept + variance[c] * unbiased * momentum;
  }
  return {};
}

base::Status call_sum_of_rows(const Call& call) {
  SLUICE_OK(call.takes({{1, 1}}));
  SLUICE_TRY(const Tensor x, call.filled_operand(0, "x", 1));
  SLUICE_TRY(const Tensor sum, call.result(0, "sum"));
  if (sum.rank() > x.rank() || !std::ranges::equal(x.dims.last(sum.rank()), sum.dims))
    return call.refuse("sums [", base::join(sum.dims, ","), "] of an input [", base::join(x.dims, ","),
                       "], expected its last dims");
  const size_t channels = sum.elements();
  sum_of_rows({x.elements() / channels, channels}, x.data, sum.data);
  return {};
}

base::Status call_sum_of_planes(const Call& call) {
  SLUICE_OK(call.takes({{1, 1}}));
  SLUICE_TRY(const Tensor x, call.filled_operand(0, "x", 2));
  SLUICE_TRY(float* const sum, channels_result(call, 0, "sum", x));
  sum_of_planes(x.dim(0), x.dim(1), x.elements() / x.dim(0) / x.dim(1), x.data, sum);
  return {};
}

base::Status call_channel_sums(const Call& call) {
  SLUICE_OK(call.takes({{4, 2}, {6, 2}}));
  const bool gated = call.num_operands() == 6;
  SLUICE_TRY(const Tensor x, call.filled_operand(1, "x", 2));
  SLUICE_TRY(const Tensor grad_y, call.operand(0, "grad_y", x.dims));
  ChannelScales scales;
  SLUICE_TRY(scales.mean, channels_operand(call, 2, "mean", x));
  SLUICE_TRY(scales.inverse, channels_operand(call, 3, "inverse", x));
  if (gated) {
    SLUICE_TRY(scales.weight, channels_operand(call, 4, "weight", x));
    SLUICE_TRY(scales.bias, channels_operand(call, 5, "bias", x));
  }
  SLUICE_TRY(float* const sum, channels_result(call, 0, "sum", x));
  SLUICE_TRY(float* const product, channels_result(call, 1, "product", x));
  channel_sums(rows_of(x), grad_y.data, x.data, scales, gated, sum, product);
  return {};
}

}  // namespace sluice::kernels
