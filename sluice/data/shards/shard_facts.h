// What must be known of all shards before an epoch's order can be computed: how many samples each holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

struct ShardFacts {
  std::vector<std::int64_t> sizes;  // samples of each shard
  // Where each sample begins in the archive; empty for a shard that is packed or of which this is not known.
  std::vector<std::vector<std::uint64_t>> starts;
  std::vector<std::uint64_t> ends;  // of each shard's last sample; where its starts are known
  std::int64_t total = 0;           // samples
  std::uint64_t bytes = 0;          // of all shards, unpacked where that is known; 0: not known
  std::uint64_t fingerprint = 0;    // of the shards' names and sizes, in their order
  // The content of each shard, as SourceFacts::version; empty where nothing tells.
  std::vector<std::string> versions;
  // Of the contents together, as far as they are the same wherever the shards are: versions of what is
  // remote, bytes of what is local.
  std::uint64_t content = 0;
  std::optional<std::uint64_t> times;  // of change, of the local shards; nothing: all are remote
  std::optional<std::uint64_t> sums;   // that sizes.json has of all local shards; nothing: not of each
};

struct LearnOptions {
  std::int64_t shard_size = 0;  // every shard holds this many samples, and none is read; 0: count
  // A shard that is damaged, and whose samples neither an index nor sizes.json counts, counts with the
  // samples before the damage (one warning). How many are lost is not known then.
  bool allow_unknown_loss = false;
  bool skip_damaged = false;  // damage is skipped when samples are read: the error then says what it needs
  const std::atomic<bool>* cancelled = nullptr;
  std::string cache_folder;  // shards that have to be read are kept here, as SourceOptions says
  std::uint64_t cache_bytes = 0;
};

// For each shard its index file, else its folder's sizes.json, else its own headers (several shards at a
// time).
// `-` and `pipe:` are an error: they can be read only once.
base::Result<ShardFacts> learn_shards(const std::vector<std::string>& urls, const LearnOptions& options = {});

// Reads the local shards of which sizes.json has a sum. kFailedPrecondition where one is not what it says.
base::Status check_sums(const std::vector<std::string>& urls);

// Whether a shard is packed: by its name, and by the first bytes of a local file.
bool is_packed(const std::string& url);

// False for `-` and `pipe:`.
bool can_be_read_again(const std::string& url);

}  // namespace sluice::data
