// Finds a batch size for a training with short trials, each with twice the previous batch size. `sluice train
// --find-batch-size` makes the trials from its own options; a program with its own steps calls:
//   find_batch_sizes({.first = 32}, [&](int64_t batch_size) { return my_trial(batch_size); });
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct BatchSizeTrial {
  int64_t batch_size = 0;          // of one replica
  double examples_per_second = 0;  // of all replicas
  // Bytes of the fullest device, up to now; of the process on a CPU. Empty: not known.
  std::optional<int64_t> memory = {}, memory_limit = {};
};

struct BatchSizeSweep {
  int64_t first = 1, largest = int64_t{1} << 20;  // of the trials
  double gain = 0.05;  // the sweep ends when two trials in a row raise the rate by less than this fraction
};

struct BatchSizes {
  std::vector<BatchSizeTrial> trials;  // the trials that succeeded
  std::string end;                     // why there is no larger one, as a part of a sentence
  int64_t suggestion = 0;              // the smallest size that is less than `gain` slower than the fastest
};

// Tries sizes until attempt(size) throws an Error kResourceExhausted or kOutOfRange (other errors, and any
// error of the first size, are passed on), until the next size would need more memory than there is, by the
// growth of the last two trials, or until larger sizes are no faster.
BatchSizes find_batch_sizes(const BatchSizeSweep& sweep,
                            const std::function<BatchSizeTrial(int64_t batch_size)>& attempt);

}  // namespace sluice::train

SLUICE_API_END
