// Sets of shards in buckets.
#pragma once

#include "sluice/data/tools/shard_set.h"

namespace sluice::data {

// write_shards for a folder SCHEME://bucket/prefix (cloud/store.h). Each shard is written under $TMPDIR (or
// /tmp), which must have room for as many as are written at a time, and uploaded to a hidden folder beside
// the set's place. When all are there, they are copied to their place within the bucket; then shards of an
// older set of this prefix are removed, and last of all sizes.json takes the new shards in: a set whose
// shards are not all in sizes.json is not whole. A run that was killed, or that ended with an error, leaves
// what it had uploaded: the next one with the same fingerprint goes on behind it.
base::Result<ShardReport> write_shards_to_bucket(
    std::int64_t count, const std::function<base::Result<NewSample>(std::int64_t)>& produce,
    const ShardOptions& options);

}  // namespace sluice::data
