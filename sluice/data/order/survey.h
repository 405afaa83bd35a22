// What has to be known of every sample before an epoch's order is computed: which of them filters take, and
// how long they are. It is found out once. From then on the order, the number of steps and resuming are those
// of a set that holds only the samples taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/length_shape.h"
#include "sluice/data/order/filter.h"
#include "sluice/data/shards/shard_facts.h"

namespace sluice::data {

struct Survey {
  std::vector<Filter> filters;
  std::vector<std::string> measured;  // extensions of the member that has the length; the first that is there
  LengthOptions length;
  std::int64_t longest = 0;  // length that is allowed, unless it is cut

  bool wanted() const { return !filters.empty() || !measured.empty(); }
};

// Leaves in `facts` the samples that all filters take: sizes, total and bytes become theirs, and `taken` says
// which they are; `lengths` says how long they are. The shards are read once, but for the payloads that
// nobody looks at; where filters ask for keys only and there are index files, those alone. A sample for which
// a filter or a length fails is an error; where `options` skip damage, it is not taken (one warning). What
// cannot be read there counts as taken: it is met as a bad sample later. kInvalidArgument when nothing is
// left.
base::Status survey_samples(const std::vector<std::string>& urls, const Survey& survey,
                            const LearnOptions& options, ShardFacts& facts);

}  // namespace sluice::data
