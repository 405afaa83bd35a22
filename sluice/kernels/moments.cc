#include "sluice/kernels/moments.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/each_cpu.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

// Elements of a block: small enough for its second reading to come from the cache.
constexpr size_t kBlock = 32 << 10;

size_t rows_of_block(size_t channels) { return std::max<size_t>(8, kBlock / std::max<size_t>(1, channels)); }

// A mean that rounding made inexact, the distances from it and their squares.
SLUICE_EACH_CPU
void block_moments(const float* x, size_t rows, size_t channels, float* __restrict mean,
                   float* __restrict squares, float* __restrict distances) {
  std::fill(mean, mean + channels, 0.f);
  std::fill(squares, squares + channels, 0.f);
  std::fill(distances, distances + channels, 0.f);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < channels; ++c) mean[c] += x[r * channels + c];
  const float scale = 1.f / static_cast<float>(rows);
  for (size_t c = 0; c < channels; ++c) mean[c] *= scale;
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < channels; ++c) {
      const float distance = x[r * channels + c] - mean[c];
      distances[c] += distance;
      squares[c] += distance * distance;
    }
  }
}

SLUICE_EACH_CPU
void block_sums(const float* g, const float* x, const float* __restrict mean, size_t rows, size_t channels,
                float* __restrict sum, float* __restrict product) {
  std::fill(sum, sum + channels, 0.f);
  std::fill(product, product + channels, 0.f);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < channels; ++c) {
      const float value = g[r * channels + c];
      sum[c] += value;
      product[c] += value * (x[r * channels + c] - mean[c]);
    }
  }
}

// body(block, first row, rows) for all blocks, on the threads of a call.
template <typename Body>
void for_blocks(size_t rows, size_t block, const Body& body) {
  parallel_for((rows + block - 1) / block, [&](size_t i) {
    const size_t first = i * block;
    body(i, first, std::min(block, rows - first));
  });
}

// The channels of a thread's part of what follows the blocks.
constexpr size_t kChannelsOfPart = 64;

// body(first channel, channels) for all of them, on the threads of a call.
template <typename Body>
void for_channels(size_t channels, const Body& body) {
  parallel_for((channels + kChannelsOfPart - 1) / kChannelsOfPart, [&](size_t i) {
    const size_t first = i * kChannelsOfPart;
    body(first, std::min(kChannelsOfPart, channels - first));
  });
}

struct Blocks {
  size_t rows, block, blocks, channels;
};

// Of kChannelsOfPart channels at most, from what the blocks found. Chan, Golub & LeVeque (1979).
SLUICE_EACH_CPU
void join_moments(const Blocks& all, const float* means, const float* squares, const float* distances,
                  size_t channels, float* __restrict mean, float* __restrict variance) {
  std::array<double, kChannelsOfPart> joined{}, joined_squares{};
  double before = 0;
  for (size_t i = 0; i < all.blocks; ++i) {
    const auto count = static_cast<double>(std::min(all.block, all.rows - i * all.block));
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
    variance[c] = static_cast<float>(std::max(0.0, joined_squares[c] / static_cast<double>(all.rows)));
  }
}

SLUICE_EACH_CPU
void join_sums(const Blocks& all, const float* sums, const float* products, const float* inverse,
               size_t channels, float* __restrict sum, float* __restrict product) {
  std::array<double, kChannelsOfPart> joined{}, joined_products{};
  for (size_t i = 0; i < all.blocks; ++i) {
    const size_t row = i * all.channels;
    for (size_t c = 0; c < channels; ++c) {
      joined[c] += sums[row + c];
      joined_products[c] += products[row + c];
    }
  }
  for (size_t c = 0; c < channels; ++c) {
    sum[c] = static_cast<float>(joined[c]);
    product[c] = static_cast<float>(joined_products[c] * inverse[c]);
  }
}

struct Rows {
  size_t rows, channels;
};

// Of [N, C, …]: all but the channels.
Rows rows_of(const pjrt::CallBuffer& x) {
  const auto channels = static_cast<size_t>(x.dims[1]);
  return {channels == 0 ? 0 : x.elements() / channels, channels};
}

base::Result<float*> floats_of(const base::Result<pjrt::CallBuffer>& buffer) {
  SLUICE_TRY(const pjrt::CallBuffer found, buffer);
  return static_cast<float*>(found.data);
}

}  // namespace

void moments(const float* x, size_t rows, size_t channels, float* mean, float* variance) {
  const size_t block = rows_of_block(channels), blocks = (rows + block - 1) / block;
  const size_t part = blocks * channels;
  const Scratch parts(3 * part * sizeof(float));
  float *const means = parts.floats(), *const squares = means + part, *const distances = squares + part;
  for_blocks(rows, block, [&](size_t i, size_t first, size_t count) {
    block_moments(x + first * channels, count, channels, means + i * channels, squares + i * channels,
                  distances + i * channels);
  });
  const Blocks all{rows, block, blocks, channels};
  for_channels(channels, [&](size_t first, size_t count) {
    join_moments(all, means + first, squares + first, distances + first, count, mean + first,
                 variance + first);
  });
}

void channel_sums(const float* g, const float* x, const float* mean, const float* inverse, size_t rows,
                  size_t channels, float* sum, float* product) {
  const size_t block = rows_of_block(channels), blocks = (rows + block - 1) / block;
  const Scratch parts(blocks * 2 * channels * sizeof(float));
  float* const sums = parts.floats();
  float* const products = sums + blocks * channels;
  for_blocks(rows, block, [&](size_t i, size_t first, size_t count) {
    block_sums(g + first * channels, x + first * channels, mean, count, channels, sums + i * channels,
               products + i * channels);
  });
  const Blocks all{rows, block, blocks, channels};
  for_channels(channels, [&](size_t first, size_t count) {
    join_sums(all, sums + first, products + first, inverse + first, count, sum + first, product + first);
  });
}

base::Status call_moments(const pjrt::CustomCall& call) {
  SLUICE_TRY(const pjrt::CallBuffer x, call.operand(0));
  SLUICE_TRY(const float* const eps, floats_of(call.operand(1)));
  SLUICE_TRY(float* const mean, floats_of(call.result(0)));
  SLUICE_TRY(float* const variance, floats_of(call.result(1)));
  SLUICE_TRY(float* const inverse, floats_of(call.result(2)));
  const auto [rows, channels] = rows_of(x);
  const UseThreads threads(call);
  moments(static_cast<const float*>(x.data), rows, channels, mean, variance);
  for (size_t c = 0; c < channels; ++c) inverse[c] = 1.f / std::sqrt(variance[c] + *eps);
  if (call.num_operands() == 2) return {};

  SLUICE_TRY(const float* const momentum, floats_of(call.operand(2)));
  SLUICE_TRY(const float* const old_mean, floats_of(call.operand(3)));
  SLUICE_TRY(const float* const old_variance, floats_of(call.operand(4)));
  SLUICE_TRY(float* const new_mean, floats_of(call.result(3)));
  SLUICE_TRY(float* const new_variance, floats_of(call.result(4)));
  const float kept = 1.f - *momentum;
  const float unbiased = static_cast<float>(rows) / (static_cast<float>(rows) - 1.f);
  for (size_t c = 0; c < channels; ++c) {
    new_mean[c] = old_mean[c] * kept + mean[c] * *momentum;
    new_variance[c] = old_variance[c] * kept + variance[c] * unbiased * *momentum;
  }
  return {};
}

base::Status call_channel_sums(const pjrt::CustomCall& call) {
  SLUICE_TRY(const float* const g, floats_of(call.operand(0)));
  SLUICE_TRY(const pjrt::CallBuffer x, call.operand(1));
  SLUICE_TRY(const float* const mean, floats_of(call.operand(2)));
  SLUICE_TRY(const float* const inverse, floats_of(call.operand(3)));
  SLUICE_TRY(float* const sum, floats_of(call.result(0)));
  SLUICE_TRY(float* const product, floats_of(call.result(1)));
  const auto [rows, channels] = rows_of(x);
  const UseThreads threads(call);
  channel_sums(g, static_cast<const float*>(x.data), mean, inverse, rows, channels, sum, product);
  return {};
}

}  // namespace sluice::kernels
