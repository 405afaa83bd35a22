// Sums that several threads made parts of. Internal to this room.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sluice::kernels {

// Where `count` sums of so many elements lie: the first at `first` unless that is null, the others one after
// the other from `scratch` on.
std::vector<float*> places_of_sums(size_t count, size_t elements, float* first, float* scratch);

// sum[i] += part[i], which lie apart.
void add_floats(float* sum, const float* part, size_t elements);

// Adds sums[1], sums[2]… to sums[0], in this order, element by element; on the threads of a call.
void add_partial_sums(std::span<float* const> sums, size_t elements);

}  // namespace sluice::kernels
