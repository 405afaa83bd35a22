// The facts about every sample that an epoch's order needs: whether the filters take it, and its length. They
// are found out once. From then on the order, the number of steps and resuming are the same as for a set that
// holds only the samples taken.
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
  std::vector<std::string> measured;  // extensions of the member that has the length; the first that exists
  LengthOptions length;
  std::int64_t longest = 0;  // the longest allowed length, unless samples are cut

  bool wanted() const { return !filters.empty() || !measured.empty(); }
};

// Leaves only the samples in `facts` that all filters take: sizes, total and bytes become theirs, `taken` has
// their numbers, and `lengths` their lengths. The shards are read once, except payloads that nobody needs; if
// filters ask only for keys and there are index files, only these are read. A sample for which a filter or a
// length fails is an error; if `options` skip damage, it is not taken (one warning). A sample that cannot be
// read then counts as taken: it is met as a bad sample later. kInvalidArgument when nothing is left.
// The answer is kept under the set's identity in the cache folder, or else in the user's (survey_file.h), and
// no shard is read the next time, unless damage is skipped or a filter or a length is a function without a
// name. One process of a machine reads; the others wait for its answer.
base::Status survey_samples(const std::vector<std::string>& urls, const Survey& survey,
                            const LearnOptions& options, ShardFacts& facts);

}  // namespace sluice::data
