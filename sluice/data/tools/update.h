// Replacing and adding members of a set's samples, by their keys.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

struct UpdateOptions {
  std::vector<std::string> urls;  // the set's shards: local files or gs://…, not packed
  // A folder of files KEY.EXTENSION, as `sluice data cat --out` writes them, keys with slashes in folders.
  // Each file replaces the member with this extension in the sample with this key, or is added to it.
  std::string folder;
  bool check = true;                                                    // decodes each member first
  std::function<void(std::int64_t done, std::int64_t total)> progress;  // shards
};

struct UpdateReport {
  std::int64_t samples = 0, replaced = 0, added = 0;  // samples that changed; members
  std::vector<std::string> shards;                    // shards that were written again
};

// Writes the shards that hold these samples again. Each appears complete under its name, and then its index
// file; at the end sizes.json, if there is one, gets the new checksums. Programs that read the set meanwhile
// notice that a shard was changed. After an error or a kill every shard is the old or the new one: the same
// call finishes the update. kNotFound, before anything is written, for a key that no sample has.
base::Result<UpdateReport> update_samples(const UpdateOptions& options);

}  // namespace sluice::data
