// How much of a convolution is done at a time. Internal to this room.
#pragma once

#include <cstddef>
#include <cstring>

namespace sluice::kernels {

// Floats of the matrix that a convolution is made a product by: so many stay in the cache.
constexpr size_t kFloatsAtOnce = size_t{1} << 18;
// Floats of a thread's part.
constexpr size_t kFloatsOfPart = size_t{1} << 14;

inline void fill_zeros(float* first, size_t count) { std::memset(first, 0, count * sizeof(float)); }

}  // namespace sluice::kernels
