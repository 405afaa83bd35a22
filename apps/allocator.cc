// jemalloc's settings, which it reads when the process starts. They belong to a program, never to the
// library: docs/install.md recommends them for other programs.
//
// For each launch, XLA's CPU plugin allocates the memory of a program's intermediate values, and LibTorch
// allocates the memory of each result. So the process keeps freed memory, including large blocks, in huge
// pages: neighbouring rows of an image are pages apart. (If it kept memory for only ten seconds, LibTorch's
// own operations took a third longer.)
#include "sluice/base/export.h"

extern "C" SLUICE_API const char* malloc_conf;
const char* malloc_conf = "thp:always,metadata_thp:auto,dirty_decay_ms:-1,oversize_threshold:0";
