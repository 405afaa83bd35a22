// Sets in MDS as shards.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sluice/data/tools/shard_set.h"

namespace sluice::data {

struct MdsOptions {
  std::string input;  // the set's folder, on a disk or in a bucket
  // The columns to take, each NAME or NAME=EXTENSION; none: all. A column is the member NAME.EXTENSION, with
  // the extension of its encoding (mds_values.h), or just the extension that is given.
  std::vector<std::string> columns;
  ShardOptions shards;
};

struct MdsReport {
  ShardReport shards;
  std::vector<std::pair<std::string, std::string>> members;  // of each column, and its encoding
  std::set<std::string> unknown_hashes;                      // kinds that were not compared
};

// The samples keep their order; a sample's key is its place in the set. As many of the set's shards are in
// memory as shards are written at a time.
base::Result<MdsReport> pack_mds(const MdsOptions& options);

}  // namespace sluice::data
