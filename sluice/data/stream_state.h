// The line of text that says where a stream stands: words of the form name=value.
#pragma once

#include <string>
#include <vector>

#include "sluice/data/stream.h"

namespace sluice::data {

// Returns the options with the epoch and the batches of a state. Throws for other text.
OpenOptions position_in(const std::string& state, OpenOptions options);

// The shards of a dataset, whose content is pinned by the words PREFIXcontent (or PREFIXtags, of
// ETags from S3's lists), PREFIXsums and PREFIXtimes.
struct PinnedShards {
  std::string prefix;
  std::vector<std::string> urls;
};

// Throws, naming the differences, if `before` and `now`, the state that a stream would have now, differ: the
// samples would come in another order, or the shards hold others. With `first_part` the times of local shards
// count; on other hosts they do not, because these have copies of their own.
void expect_same(const std::string& before, const std::string& now, const std::vector<PinnedShards>& shards,
                 bool first_part);

// For a run that continues at an epoch's start, where another order does no harm: returns a message if the
// shards have the same names and numbers of samples as in a state, but other contents; else an empty text.
// Reads nothing.
std::string changed_content(const std::string& before, const std::string& now);

}  // namespace sluice::data
