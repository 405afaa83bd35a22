// Sums that several threads compute in parts. Internal to this room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sluice/kernels/threads.h"

namespace sluice::kernels {

// Returns the addresses of `count` sums of `elements` floats each: the first at `first` unless that is null,
// the others one after the other from `scratch` on.
std::vector<float*> sum_buffers(size_t count, size_t elements, float* first, float* scratch);

// Computes sum[i] += part[i]; the two must not overlap.
void add_floats(float* sum, const float* part, size_t elements);

// Adds sums[1], sums[2]… to sums[0], in this order, element by element; on the threads of a call.
void add_partial_sums(std::span<float* const> sums, size_t elements);

// The number of elements whose sums are joined at once.
constexpr size_t kElementsOfJoin = 64;

// Calls body(first element, elements) for all of them, on the threads of a call.
template <typename Body>
void for_joins(size_t elements, const Body& body) {
  parallel_for((elements + kElementsOfJoin - 1) / kElementsOfJoin, [&](size_t i) {
    const size_t first = i * kElementsOfJoin;
    body(first, std::min(kElementsOfJoin, elements - first));
  });
}

// Computes sum[i] = Σ parts[k * step + i] over `count` parts, in double, for at most kElementsOfJoin
// elements.
void join_sums(size_t count, const float* parts, size_t step, size_t elements, float* sum);

}  // namespace sluice::kernels
