// Sixteen floats that are worked on together: one register of AVX-512, or several smaller ones. Internal to
// this room; only for functions that are compiled for each CPU (each_cpu.h), and what is inlined there.
#pragma once

#include <cstddef>
#include <cstring>

#include "sluice/kernels/each_cpu.h"

namespace sluice::kernels {

constexpr size_t kLanes = 16;
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

// Whether a register of this CPU holds them all, and there are 32 of these.
inline bool lanes_are_registers() {
#if defined(__x86_64__)
  static const bool are = __builtin_cpu_supports("avx512f") > 0;
  return are;
#else
  return false;
#endif
}

// T: float or Lanes, from or to memory of any alignment. (A Lanes that is returned would change the ABI.)
template <typename T>
SLUICE_INLINE void load(const float* from, T& value) {
  std::memcpy(&value, from, sizeof value);
}
template <typename T>
SLUICE_INLINE void store(const T& value, float* to) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace sluice::kernels
