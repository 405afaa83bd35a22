// jemalloc's settings, which it reads when the process starts. They belong to a program, never to the
// library: docs/install.md has them as advice for programs of others.
//
// XLA's CPU plugin takes the memory of a program's intermediate values again for each launch, and LibTorch
// that of each result: what was freed stays the process's, large blocks too, and comes in huge pages:
// neighbouring rows of an image lie pages apart. (With a limit of ten seconds LibTorch's own operations took
// a third longer.)
#include "sluice/base/export.h"

extern "C" SLUICE_API const char* malloc_conf;
const char* malloc_conf = "thp:always,metadata_thp:auto,dirty_decay_ms:-1,oversize_threshold:0";
