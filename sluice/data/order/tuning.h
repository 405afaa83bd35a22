// How many threads should decode: found out while a stream runs.
#pragma once

#include "sluice/data/stream_statistics.h"

namespace sluice::data {

// What passed between two looks at a stream's statistics says how many threads to add: half as many again
// (at least one, up to `most` in all) when the consumer waited for 5 % of the time or more while the decoders
// were busy and the reader had to wait for them. Fewer are never better: a thread without work costs nothing.
// 0: leave them, or the looks are less than half a second apart.
int decoders_to_add(const Statistics& before, const Statistics& now, int most);

}  // namespace sluice::data
