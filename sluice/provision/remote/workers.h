// Which workers of a slice a command is for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::provision {

// "all", "0" or "0,2-5": the numbers in ascending order, each once. `count` is how many workers the slice
// has. kInvalidArgument for a text that is none of these, and for a worker that the slice does not have.
base::Result<std::vector<int>> parse_workers(std::string_view text, int count);

}  // namespace sluice::provision
