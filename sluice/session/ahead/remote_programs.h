// Compiled programs in a bucket: SLUICE_CACHE_DIR=gs://bucket/programs, for all hosts of a slice and all
// later starts. A bucket's programs are machine code that this process runs: whoever may write there is
// trusted.
#pragma once

#include <string>

#include "sluice/base/result.h"

namespace sluice::sessions {

// Lets the cache of compiled programs use buckets. Must be called before the device is opened. Threads: any.
void keep_programs_in_buckets();

// Stores a compiled program's file as an object. Without `replace`, an object that exists stays as it is.
base::Status store_program(const std::string& path, const std::string& url, bool replace);

}  // namespace sluice::sessions
