// The points that earlier starts of a run left in TensorBoard's event files.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "sluice/base/result.h"

namespace sluice::train {

// Returns the names of the curves that have a point at this step, as TensorBoard reads the files of the
// folder: a start drops the points of its first and later steps in earlier files. Reads all files.
base::Result<std::set<std::string>> curves_with_point(const std::string& folder, int64_t step);

}  // namespace sluice::train
