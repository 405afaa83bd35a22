// Floats in registers, and functions that are compiled for each width of register. Internal to this room;
// only for code that is inlined into such functions.
//
// GCC's vector extensions, not Highway: formulas keep their operators and also serve single floats
// (winograd_transform.cc), and each is compiled for two widths, not for all that Highway supports. Highway's
// speed is the same (1.0.3, AMD EPYC with AVX2, best of 31 rounds, five runs): with Highway the micro-kernel
// takes 0.97 to 1.04 times as long, exponential() 0.94 to 1.08 times.
#pragma once

#include <cstddef>

#include "sluice/kernels/each_cpu.h"

namespace sluice::kernels {

typedef float Lanes16 __attribute__((vector_size(64)));  // AVX-512, which has 32 such registers
typedef float Lanes8 __attribute__((vector_size(32)));   // AVX2, 16 of them; elsewhere several smaller ones

#if defined(__x86_64__)
#define SLUICE_FOR_LANES16 __attribute__((target("avx512f")))
#define SLUICE_FOR_LANES8 __attribute__((target("avx2,fma")))
#else
#define SLUICE_FOR_LANES16
#define SLUICE_FOR_LANES8
#endif

// Returns whether this CPU has registers for Lanes16.
inline bool has_lanes16() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx512f") > 0;
  return has;
#else
  return false;
#endif
}
// Returns whether this CPU can run code that is compiled for Lanes8.
inline bool has_lanes8() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2") > 0 && __builtin_cpu_supports("fma") > 0;
  return has;
#else
  return true;
#endif
}

// Defines `name`, with these parameters, as name_by<Lanes16> or name_by<Lanes8>, depending on this CPU; both
// are compiled for their registers if name_by is SLUICE_INLINE. To be called with has_lanes8() only.
#define SLUICE_BY_LANES(name, parameters, arguments)                                    \
  SLUICE_FOR_LANES16 static void name##_16 parameters { name##_by<Lanes16> arguments; } \
  SLUICE_FOR_LANES8 static void name##_8 parameters { name##_by<Lanes8> arguments; }    \
  void name parameters { has_lanes16() ? name##_16 arguments : name##_8 arguments; }

// The number of floats in T: float or Lanes….
template <typename T>
constexpr size_t kFloatsOf = sizeof(T) / sizeof(float);

// Copy between lanes and memory of any alignment, through a type that declares it. (memcpy would take the
// lanes out of their registers. Returning lanes would change the ABI.)
template <typename T>
SLUICE_INLINE void load(const float* from, T& value) {
  typedef T Anywhere __attribute__((aligned(alignof(float)), may_alias));
  value = *reinterpret_cast<const Anywhere*>(from);
}
template <typename T>
SLUICE_INLINE void store(const T& value, float* to) {
  typedef T Anywhere __attribute__((aligned(alignof(float)), may_alias));
  *reinterpret_cast<Anywhere*>(to) = value;
}

}  // namespace sluice::kernels
