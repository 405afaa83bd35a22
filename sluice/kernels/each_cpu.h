// For functions that the compiler vectorises. Internal to this room.
#pragma once

// Compiled for each instruction set; the one of this CPU is chosen when the program starts. (Sanitizers'
// start comes after that choice.) SLUICE_EACH_CPU_256 leaves out AVX-512, where a choice between a number
// from memory and 0 becomes a load that waits for what is chosen by: bad where memory is what it all waits
// for.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SLUICE_EACH_CPU __attribute__((target_clones("avx512f", "avx2", "default")))
#define SLUICE_EACH_CPU_256 __attribute__((target_clones("avx2", "default")))
#else
#define SLUICE_EACH_CPU
#define SLUICE_EACH_CPU_256
#endif

// What such a function calls, to be compiled with it for each instruction set.
#define SLUICE_INLINE inline __attribute__((always_inline))
