// NumPy's .npy files.
#pragma once

#include <string_view>

#include "sluice/base/result.h"
#include "sluice/data/array.h"

namespace sluice::data {

// Format versions 1 to 3, little-endian or single-byte elements, C order. What Array has no type for, Fortran
// order and pickled objects are errors that say so.
base::Result<Array> parse_npy(std::string_view bytes);

}  // namespace sluice::data
