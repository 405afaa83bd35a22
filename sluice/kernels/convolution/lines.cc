#include "sluice/kernels/convolution/lines.h"

#include "sluice/kernels/each_cpu.h"

namespace sluice::kernels {

SLUICE_EACH_CPU
void copy_apart(const float* from, size_t step, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = from[i * step];
}

SLUICE_EACH_CPU
void fill(float number, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = number;
}

SLUICE_EACH_CPU
void add(float number, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] += number;
}

SLUICE_EACH_CPU
void add_apart(const float* from, size_t count, size_t step, float* to) {
  for (size_t i = 0; i < count; ++i) to[i * step] += from[i];
}

}  // namespace sluice::kernels
