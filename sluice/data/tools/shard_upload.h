// Sets of shards in buckets.
#pragma once

#include "sluice/data/tools/shard_set.h"

namespace sluice::data {

// write_shards() for a folder SCHEME://bucket/prefix (cloud/store.h). Each shard is written under $TMPDIR (or
// /tmp), which needs room for all shards that are written at the same time, and uploaded to a hidden folder
// next to the set's place. When all are there, they are copied to their place within the bucket. Then shards
// of an older set of this prefix are removed, and at last sizes.json gets the new shards: a set is not whole
// until all its shards are in sizes.json. A run that was killed, or that ended with an error, leaves its
// uploaded shards; the next one with the same fingerprint continues after them.
base::Result<ShardReport> write_shards_to_bucket(
    std::int64_t count, const std::function<base::Result<NewSample>(std::int64_t)>& produce,
    const ShardOptions& options);

}  // namespace sluice::data
