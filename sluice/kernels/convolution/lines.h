// Lines of a plane, with a stride. Internal to this room.
#pragma once

#include <cstddef>

namespace sluice::kernels {

// to[i] = from[i * step]
void copy_apart(const float* from, size_t step, size_t count, float* to);
// to[i] = number, to[i] += number
void fill(float number, size_t count, float* to);
void add(float number, size_t count, float* to);
// to[i * step] += from[i]
void add_apart(const float* from, size_t count, size_t step, float* to);

}  // namespace sluice::kernels
