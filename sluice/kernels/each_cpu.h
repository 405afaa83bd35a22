// For functions that the compiler vectorises. Internal to this room.
#pragma once

// Functions with this attribute are compiled for each instruction set; the version for this CPU is chosen
// when the program starts. (Sanitizers start after that choice.) SLUICE_EACH_CPU_256 leaves out AVX-512:
// there a choice between a number from memory and 0 becomes a load that waits for the condition, which is
// slow in code that waits for memory.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SLUICE_EACH_CPU __attribute__((target_clones("avx512f", "avx2", "default")))
#define SLUICE_EACH_CPU_256 __attribute__((target_clones("avx2", "default")))
#else
#define SLUICE_EACH_CPU
#define SLUICE_EACH_CPU_256
#endif

// Marks a function that such functions call, to be compiled with them for each instruction set.
#define SLUICE_INLINE inline __attribute__((always_inline))
