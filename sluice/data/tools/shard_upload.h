// Sets of shards in buckets.
#pragma once

#include "sluice/data/tools/shard_set.h"

namespace sluice::data {

// write_shards for a folder SCHEME://bucket/prefix (cloud/store.h). The set is written under $TMPDIR first
// (or /tmp), which must have room for it, and uploaded when it is whole; then shards of an older set of this
// prefix are removed, and last of all sizes.json takes the new shards in: a set whose shards are not all in
// sizes.json is not whole.
base::Result<ShardReport> write_shards_to_bucket(
    std::int64_t count, const std::function<base::Result<NewSample>(std::int64_t)>& produce,
    const ShardOptions& options);

}  // namespace sluice::data
