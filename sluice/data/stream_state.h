// The line of text that says where a stream stands: words of the form name=value.
#pragma once

#include <string>
#include <vector>

#include "sluice/data/stream.h"

namespace sluice::data {

// The options with the epoch and the batches of a state. Throws for other text.
OpenOptions position_in(const std::string& state, OpenOptions options);

// The shards of a dataset, whose content is pinned by the words PREFIXcontent, PREFIXsums and PREFIXtimes.
struct PinnedShards {
  std::string prefix;
  std::vector<std::string> urls;
};

// Throws what differs in the state that a stream would have now: the samples would come in another order, or
// the shards hold others. `first_part`: of the first host alone the times of local shards count, as other
// hosts have copies of their own.
void expect_same(const std::string& before, const std::string& now, const std::vector<PinnedShards>& shards,
                 bool first_part);

}  // namespace sluice::data
