// For functions that the compiler vectorises. Internal to this room.
#pragma once

// Compiled for each instruction set; the one of this CPU is chosen when the program starts. (Sanitizers'
// start comes after that choice.)
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SLUICE_EACH_CPU __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SLUICE_EACH_CPU
#endif
