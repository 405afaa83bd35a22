// Samples of different lengths in a batch of one shape.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/batch.h"

namespace sluice::data {

// Makes the arrays among a sample's fields that have `length` rows into such of `shape_length` rows:
// `padding` comes behind them (one number for each field; where there is none, 0), or their end is left out.
// Sets the sample's length. kInvalidArgument when no field is such an array, or its type has no such number.
base::Status fit_length(Sample& sample, std::int64_t length, std::int64_t shape_length,
                        const std::vector<double>& padding);

}  // namespace sluice::data
