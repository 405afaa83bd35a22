// NumPy's .npy files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/array.h"

namespace sluice::data {

// Format versions 1 to 3, little-endian or single-byte elements, C order. What Array has no type for, Fortran
// order and pickled objects are errors that say so.
base::Result<Array> parse_npy(std::string_view bytes);
// A file of format version 1. `type` is NumPy's text for it, such as "<f4"; `elements` are the bytes of all
// of them, in C order, as many as type and shape say.
std::string npy_file(std::string_view type, const std::vector<std::int64_t>& shape,
                     std::string_view elements);

}  // namespace sluice::data
