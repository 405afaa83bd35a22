// Selects the workers of a slice that a command runs on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::provision {

// Reads "all", "0" or "0,2-5": returns the numbers in ascending order, each once. `count`: the number of
// workers of the slice. kInvalidArgument for a text of another form, and for a worker that the slice does not
// have.
base::Result<std::vector<int>> parse_workers(std::string_view text, int count);

}  // namespace sluice::provision
