// Import of MDS sets as shards.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sluice/data/tools/shard_set.h"

namespace sluice::data {

struct MdsOptions {
  std::string input;  // the set's folder, on a disk or in a bucket
  // The columns to take, each NAME or NAME=EXTENSION; empty: all. A column becomes the member NAME.EXTENSION,
  // with the extension of its encoding (mds_values.h), or only the given extension.
  std::vector<std::string> columns;
  ShardOptions shards;
};

struct MdsReport {
  ShardReport shards;
  std::vector<std::pair<std::string, std::string>> members;  // of each column, and its encoding
  std::set<std::string> unknown_hashes;                      // kinds of hashes that were not compared
};

// Packs a set. The samples keep their order; a sample's key is its index in the set. The number of the set's
// shards in memory is the number of shards that are written at a time.
base::Result<MdsReport> pack_mds(const MdsOptions& options);

}  // namespace sluice::data
