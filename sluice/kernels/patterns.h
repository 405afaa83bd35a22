// Numbers of the channels, side by side with several rows of activations. Internal to this room.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "sluice/kernels/arena.h"

namespace sluice::kernels {

// What normalizes a channel c: x -> (x - mean[c]) inverse[c] weight[c] + bias[c].
struct ChannelScales {
  const float *mean = nullptr, *inverse = nullptr, *weight = nullptr, *bias = nullptr;
};

// g, or 0 where gate is 0 or less; a NaN lets g pass. By bits, not by a choice: of that the compiler makes a
// branch in one place and a load that waits for the gate in another.
inline float passed(float g, float gate) {
  const uint32_t all = gate <= 0.f ? 0 : ~uint32_t{0};
  return std::bit_cast<float>(std::bit_cast<uint32_t>(g) & all);
}

// kNumbers numbers of each channel, as rows that repeat the channels: a row of few channels alone would be a
// loop of a few steps. Made and destroyed by one thread, read by any.
template <size_t kNumbers>
class Patterns {
 public:
  Patterns(size_t channels, size_t repeats)
      : channels_(channels), length_(channels * repeats), memory_(kNumbers * length_ * sizeof(float)) {}

  // numbers(c): those of channel c.
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
  // Number k of element i and those behind it, up to the pattern's end.
  const float* at(size_t k, size_t i) const { return memory_.floats() + k * length_ + i; }

 private:
  size_t channels_, length_;
  Scratch memory_;
};

}  // namespace sluice::kernels
