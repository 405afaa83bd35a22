// Sums that several threads made parts of. Internal to this room.
#pragma once

#include <cstddef>
#include <span>

namespace sluice::kernels {

// Adds sums[1], sums[2]… to sums[0], in this order, element by element; on the threads of a call.
void add_partial_sums(std::span<float* const> sums, size_t elements);

}  // namespace sluice::kernels
