#include "sluice/kernels/convolution/lines.h"

#include <cstring>

#include "sluice/kernels/each_cpu.h"

namespace sluice::kernels {
namespace {

// The compiler makes shuffles of a step that it knows.
SLUICE_EACH_CPU
void copy_pairs(const float* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = from[2 * i];
}

SLUICE_EACH_CPU
void copy_far_apart(const float* from, size_t step, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = from[i * step];
}

}  // namespace

void copy_apart(const float* from, size_t step, size_t count, float* to) {
  if (step == 1)
    std::memcpy(to, from, count * sizeof(float));
  else if (step == 2)
    copy_pairs(from, count, to);
  else
    copy_far_apart(from, step, count, to);
}

SLUICE_EACH_CPU
void spread_apart(const float* from, size_t count, size_t step, float* to) {
  for (size_t i = 0; i < count; ++i) to[i * step] = from[i];
}

SLUICE_EACH_CPU
void add_apart(const float* from, size_t count, size_t step, float* to) {
  for (size_t i = 0; i < count; ++i) to[i * step] += from[i];
}

}  // namespace sluice::kernels
