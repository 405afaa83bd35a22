// The number of threads that decode, adjusted while a stream runs.
#pragma once

#include "sluice/data/stream_statistics.h"

namespace sluice::data {

// Returns the number of threads to add, from two readings of a stream's statistics. It is half the present
// number (at least one, up to `most` in all) if the consumer waited for 5 % of the time or more while the
// decoders were busy and the reader had to wait for them. It is never negative: a thread without work costs
// nothing. 0: no change, or the readings are less than half a second apart.
int decoders_to_add(const Statistics& before, const Statistics& now, int most);

}  // namespace sluice::data
