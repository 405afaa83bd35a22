// NumPy's .npy files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/array.h"

namespace sluice::data {

// Parses format versions 1 to 3, little-endian or single-byte elements, C order. Types that Array does not
// have, Fortran order and pickled objects are errors that say so.
base::Result<Array> parse_npy(std::string_view bytes);
// Returns a file of format version 1. `type` is NumPy's text for the type, such as "<f4"; `elements` are the
// bytes of all elements that type and shape ask for, in C order.
std::string npy_file(std::string_view type, const std::vector<std::int64_t>& shape,
                     std::string_view elements);

}  // namespace sluice::data
