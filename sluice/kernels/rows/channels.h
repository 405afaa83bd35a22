// Activations as rows of channels, and numbers for each channel. Internal to this room.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/call.h"

namespace sluice::kernels {

// Activations [N, C, …] in memory with the channels last: rows × channels, dense.
struct Rows {
  size_t rows = 0, channels = 0;
  size_t elements() const { return rows * channels; }
};
// Returns the rows of a tensor with at least one element.
inline Rows rows_of(const Tensor& x) { return {x.elements() / x.dim(1), x.dim(1)}; }
// Reads operand or result i of a call: a number for each of x's channels.
inline base::Result<float*> channels_operand(const Call& call, size_t i, std::string_view name,
                                             const Tensor& x) {
  SLUICE_TRY(const Tensor found, call.operand(i, name, x.dims.subspan(1, 1)));
  return found.data;
}
inline base::Result<float*> channels_result(const Call& call, size_t i, std::string_view name,
                                            const Tensor& x) {
  SLUICE_TRY(const Tensor found, call.result(i, name, x.dims.subspan(1, 1)));
  return found.data;
}
// Reads a number without dimensions.
inline base::Result<float> scalar_operand(const Call& call, size_t i, std::string_view name) {
  SLUICE_TRY(const Tensor found, call.operand(i, name, {}));
  return *found.data;
}

// The parameters that normalize a channel c: x -> (x - mean[c]) inverse[c] weight[c] + bias[c].
struct ChannelScales {
  const float *mean = nullptr, *inverse = nullptr, *weight = nullptr, *bias = nullptr;
};

// Returns g, or 0 where gate is 0 or less; a NaN gate lets g pass. It masks bits instead of choosing: from a
// choice the compiler makes a branch in one place and a load that waits for the gate in another.
inline float passed(float g, float gate) {
  const uint32_t all = gate <= 0.f ? 0 : ~uint32_t{0};
  return std::bit_cast<float>(std::bit_cast<uint32_t>(g) & all);
}

// kNumbers numbers of each channel, in rows that repeat the channels: a row of few channels would be a loop
// of only a few steps. Made and destroyed by one thread, read by any.
template <size_t kNumbers>
class RepeatedChannels {
 public:
  RepeatedChannels(size_t channels, size_t repeats)
      : channels_(channels), length_(channels * repeats), memory_(kNumbers * length_ * sizeof(float)) {}

  // numbers(c) returns the numbers of channel c.
  template <typename Numbers>
  void fill(const Numbers& numbers) const {
    for (size_t c = 0; c < channels_; ++c) {
      const std::array<float, kNumbers> values = numbers(c);
      for (size_t k = 0; k < kNumbers; ++k) memory_.floats()[k * length_ + c] = values[k];
    }
    for (size_t k = 0; k < kNumbers; ++k) {
      float* const row = memory_.floats() + k * length_;
      for (size_t i = channels_; i < length_; ++i) row[i] = row[i - channels_];
    }
  }

  size_t length() const { return length_; }
  // Returns number k of element i and of the elements after it, up to the pattern's end.
  const float* at(size_t k, size_t i) const { return memory_.floats() + k * length_ + i; }

 private:
  size_t channels_, length_;
  Scratch memory_;
};

}  // namespace sluice::kernels
