#include "sluice/kernels/rows/normalization.h"

#include <algorithm>
#include <array>

#include "sluice/kernels/each_cpu.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

// The elements that are processed at once.
constexpr size_t kBlock = 512;
// The elements of a thread's piece of work.
constexpr size_t kPiece = 64 * kBlock;

// Returns how often the channels' numbers are repeated for a block.
size_t repeats_for(size_t channels) { return std::max<size_t>(1, kBlock / std::max<size_t>(1, channels)); }

// Calls body(first element, its place in the pattern, elements) for blocks of all elements, on the threads of
// a call.
template <typename Body>
void for_blocks(size_t elements, size_t pattern, const Body& body) {
  const size_t piece = pattern * std::max<size_t>(1, kPiece / pattern);
  parallel_for((elements + piece - 1) / piece, [&](size_t p) {
    const size_t end = std::min(elements, (p + 1) * piece);
    for (size_t i = p * piece; i < end;) {
      const size_t place = i % pattern, count = std::min({kBlock, pattern - place, end - i});
      body(i, place, count);
      i += count;
    }
  });
}

SLUICE_EACH_CPU
void rectify(const float* x, const float* mean, const float* factor, const float* bias, size_t count,
             float* __restrict y) {
  for (size_t i = 0; i < count; ++i) {
    const float value = (x[i] - mean[i]) * factor[i] + bias[i];
    y[i] = value < 0.f ? 0.f : value;
  }
}

SLUICE_EACH_CPU
void rectify_sum(const float* x, const float* mean, const float* factor, const float* bias,
                 const float* other, size_t count, float* __restrict y) {
  for (size_t i = 0; i < count; ++i) {
    const float value = (x[i] - mean[i]) * factor[i] + bias[i] + other[i];
    y[i] = value < 0.f ? 0.f : value;
  }
}

SLUICE_EACH_CPU
void rectify_both(const float* x, const float* mean, const float* factor, const float* bias,
                  const float* other, const float* other_mean, const float* other_factor,
                  const float* other_bias, size_t count, float* __restrict y) {
  for (size_t i = 0; i < count; ++i) {
    const float value = (x[i] - mean[i]) * factor[i] + bias[i];
    const float sum = value + ((other[i] - other_mean[i]) * other_factor[i] + other_bias[i]);
    y[i] = sum < 0.f ? 0.f : sum;
  }
}

SLUICE_EACH_CPU
void gradient_block(const float* grad_y, const float* x, const float* mean, const float* factor,
                    const float* mean_grad, const float* slope, size_t count, float* out) {
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i)
    out[i] = (grad_y[i] - mean_grad[i] - (x[i] - mean[i]) * slope[i]) * factor[i];
}

SLUICE_EACH_CPU_256
void gated_gradient_block(const float* grad_y, const float* x, const float* mean, const float* factor,
                          const float* mean_grad, const float* slope, const float* bias, size_t count,
                          float* out) {
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    const float centered = x[i] - mean[i];
    const float value = passed(grad_y[i], centered * factor[i] + bias[i]);
    out[i] = (value - mean_grad[i] - centered * slope[i]) * factor[i];
  }
}

// Reads the operands from `first` on: numbers for each of x's channels.
base::Result<ChannelScales> scales_of(const Call& call, size_t first, const Tensor& x, bool with_bias) {
  ChannelScales scales;
  SLUICE_TRY(scales.mean, channels_operand(call, first, "mean", x));
  SLUICE_TRY(scales.inverse, channels_operand(call, first + 1, "inverse", x));
  SLUICE_TRY(scales.weight, channels_operand(call, first + 2, "weight", x));
  if (with_bias) {
    SLUICE_TRY(scales.bias, channels_operand(call, first + 3, "bias", x));
  }
  return scales;
}

}  // namespace

void normalize(const Rows& size, const float* x, const ChannelScales& scales, const float* other,
               const ChannelScales* other_scales, float* y) {
  const size_t repeats = repeats_for(size.channels);
  const auto numbers = [](const ChannelScales& s, size_t c) {
    return std::array{s.mean[c], s.inverse[c] * s.weight[c], s.bias[c]};
  };
  const RepeatedChannels<3> own(size.channels, repeats),
      others(other_scales == nullptr ? 0 : size.channels, repeats);
  own.fill([&](size_t c) { return numbers(scales, c); });
  if (other_scales != nullptr) others.fill([&](size_t c) { return numbers(*other_scales, c); });
  for_blocks(size.elements(), own.length(), [&](size_t i, size_t p, size_t count) {
    const float *const mean = own.at(0, p), *const factor = own.at(1, p), *const bias = own.at(2, p);
    if (other == nullptr)
      rectify(x + i, mean, factor, bias, count, y + i);
    else if (other_scales == nullptr)
      rectify_sum(x + i, mean, factor, bias, other + i, count, y + i);
    else
      rectify_both(x + i, mean, factor, bias, other + i, others.at(0, p), others.at(1, p), others.at(2, p),
                   count, y + i);
  });
}

void normalization_gradient(const Rows& size, const float* grad_y, const float* x,
                            const ChannelScales& scales, bool gated, const float* mean_grad,
                            const float* mean_product, float* grad_x) {
  const RepeatedChannels<5> numbers(size.channels, repeats_for(size.channels));
  numbers.fill([&](size_t c) {
    return std::array{scales.mean[c], scales.inverse[c] * scales.weight[c], mean_grad[c],
                      scales.inverse[c] * mean_product[c], gated ? scales.bias[c] : 0.f};
  });
  for_blocks(size.elements(), numbers.length(), [&](size_t i, size_t p, size_t count) {
    if (gated)
      gated_gradient_block(grad_y + i, x + i, numbers.at(0, p), numbers.at(1, p), numbers.at(2, p),
                           numbers.at(3, p), numbers.at(4, p), count, grad_x + i);
    else
      gradient_block(grad_y + i, x + i, numbers.at(0, p), numbers.at(1, p), numbers.at(2, p),
                     numbers.at(3, p), count, grad_x + i);
  });
}

base::Status call_normalize(const Call& call) {
  SLUICE_OK(call.takes({{5, 1}, {6, 1}, {10, 1}}));
  SLUICE_TRY(const Tensor x, call.filled_operand(0, "x", 2));
  SLUICE_TRY(const ChannelScales scales, scales_of(call, 1, x, true));
  SLUICE_TRY(const Tensor y, call.result(0, "y", x.dims));
  Tensor other;
  ChannelScales other_scales;
  if (call.num_operands() > 5) {
    SLUICE_TRY(other, call.operand(5, "other", x.dims));
  }
  const bool both = call.num_operands() > 6;
  if (both) {
    SLUICE_TRY(other_scales, scales_of(call, 6, x, true));
  }
  normalize(rows_of(x), x.data, scales, other.data, both ? &other_scales : nullptr, y.data);
  return {};
}

base::Status call_normalization_gradient(const Call& call) {
  SLUICE_OK(call.takes({{7, 1}, {8, 1}}));
  const bool gated = call.num_operands() == 8;
  SLUICE_TRY(const Tensor x, call.filled_operand(1, "x", 2));
  SLUICE_TRY(const Tensor grad_y, call.operand(0, "grad_y", x.dims));
  SLUICE_TRY(ChannelScales scales, scales_of(call, 2, x, false));
  SLUICE_TRY(const float* const mean_grad, channels_operand(call, 5, "mean of grad_y", x));
  SLUICE_TRY(const float* const mean_product, channels_operand(call, 6, "mean of products", x));
  if (gated) {
    SLUICE_TRY(scales.bias, channels_operand(call, 7, "bias", x));
  }
  SLUICE_TRY(const Tensor grad_x, call.result(0, "grad_x", x.dims));
  normalization_gradient(rows_of(x), grad_y.data, x.data, scales, gated, mean_grad, mean_product,
                         grad_x.data);
  return {};
}

}  // namespace sluice::kernels
