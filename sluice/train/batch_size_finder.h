// Which batch size a training should have: short trials, each with twice as many samples. `sluice train
// --find-batch-size` makes them of what it would train; with steps of one's own:
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
  // Bytes of the fullest device, up to now; of a CPU those of the process. Nothing: not known.
  std::optional<int64_t> memory = {}, memory_limit = {};
};

struct BatchSizeSweep {
  int64_t first = 1, largest = int64_t{1} << 20;  // of the trials
  double gain = 0.05;  // the sweep ends when two trials one after the other are less faster than by this part
};

struct BatchSizes {
  std::vector<BatchSizeTrial> trials;  // those that fit
  std::string end;                     // why there is no larger one, as a part of a sentence
  int64_t suggestion = 0;              // the smallest one that is less than `gain` slower than the fastest
};

// Tries sizes until attempt(size) throws an Error kResourceExhausted or kOutOfRange (other errors are passed
// on, and these of the first size), the next one would need more memory than there is as what the last ones
// took grows, or larger ones are no faster.
BatchSizes find_batch_sizes(const BatchSizeSweep& sweep,
                            const std::function<BatchSizeTrial(int64_t batch_size)>& attempt);

}  // namespace sluice::train

SLUICE_API_END
