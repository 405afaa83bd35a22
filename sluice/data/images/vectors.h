// Vector registers that not every x86 has, used if the machine has them.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#define SLUICE_AVX2 __attribute__((target("avx2")))
#endif

namespace sluice::data {

#ifdef SLUICE_AVX2
inline bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") > 0;
  return has;
}
#endif

}  // namespace sluice::data
