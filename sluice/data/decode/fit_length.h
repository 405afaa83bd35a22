// Fitting samples of different lengths into a batch of one shape.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/batch.h"

namespace sluice::data {

// Changes the arrays among a sample's fields that have `length` rows to `shape_length` rows: appends
// `padding` (one number for each field; 0 if it has no entry), or leaves out their end. Sets the sample's
// length. kInvalidArgument if no field is such an array, or its type cannot hold the padding.
base::Status fit_length(Sample& sample, std::int64_t length, std::int64_t shape_length,
                        const std::vector<double>& padding);

}  // namespace sluice::data
