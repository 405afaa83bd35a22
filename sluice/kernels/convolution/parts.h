// The sizes of a convolution's parts. Internal to this room.
#pragma once

#include <cstddef>
#include <cstring>

namespace sluice::kernels {

// The floats of a convolution's matrix that are made at once: they stay in the cache.
constexpr size_t kFloatsAtOnce = size_t{1} << 18;
// The floats of a thread's part.
constexpr size_t kFloatsOfPart = size_t{1} << 14;

inline void fill_zeros(float* first, size_t count) { std::memset(first, 0, count * sizeof(float)); }

}  // namespace sluice::kernels
