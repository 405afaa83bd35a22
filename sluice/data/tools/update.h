// Other members for samples of a set, by their keys.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

struct UpdateOptions {
  std::vector<std::string> urls;  // of the set's shards: local files or gs://…, not packed
  // Files KEY.EXTENSION, as `sluice data cat --out` writes them, keys with slashes in folders: each replaces
  // the member with this extension of the sample with this key, or is added to it.
  std::string folder;
  bool check = true;                                                    // decodes each member first
  std::function<void(std::int64_t done, std::int64_t total)> progress;  // shards
};

struct UpdateReport {
  std::int64_t samples = 0, replaced = 0, added = 0;  // samples that changed; members
  std::vector<std::string> shards;                    // that were written again
};

// Writes again the shards that hold these samples, each of which appears complete under its name, and then
// its index file; sizes.json, where there is one, says their new checksums at the end. Whoever reads the set
// meanwhile sees that a shard is not what it was. After an error or a kill every shard is the old or the new
// one: the same call finishes. kNotFound, before anything is written, for a key that no sample has.
base::Result<UpdateReport> update_samples(const UpdateOptions& options);

}  // namespace sluice::data
