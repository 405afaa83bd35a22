// The random numbers that the device draws for a key, computed on the host.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <vector>

#include "sluice/ops/random.h"

namespace sluice::tests {

// The first key that a generator with this seed gives.
inline uint64_t first_key(uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

// What a call with this key draws uniformly from [0, 1) on a replica, as f64: multiples of 2^-24, or of 2^-53
// if `wide`.
inline torch::Tensor uniform_of(uint64_t key, const std::vector<int64_t>& sizes, bool wide = false,
                                uint32_t replica = 0) {
  const auto keys = [&](uint32_t draw) {
    return ops::round_keys(static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), draw, replica << 8);
  };
  const auto first = keys(0), second = keys(1);
  torch::Tensor numbers = torch::empty(sizes, torch::kDouble);
  for (uint32_t place = 0; place < numbers.numel(); ++place) {
    const uint32_t word = ops::word_at(place, first);
    const uint64_t both = uint64_t{word} << 32 | ops::word_at(place, second);
    numbers.data_ptr<double>()[place] =
        wide ? static_cast<double>(both >> 11) * 0x1p-53 : static_cast<double>(word >> 8) * 0x1p-24;
  }
  return numbers;
}

}  // namespace sluice::tests
