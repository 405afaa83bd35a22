// What must be known of all shards before an epoch's order can be computed: how many samples each holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/shards/source.h"

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
  // What sizes.json says of the bytes of each shard, where they were not yet compared with it.
  std::vector<std::optional<ShardSum>> unread_sums;
  // Of the contents together, as far as they are the same wherever the shards are: versions of what is
  // remote, bytes of what is local.
  std::uint64_t content = 0;
  std::optional<std::uint64_t> times;  // of change, of the local shards; nothing: all are remote
  std::optional<std::uint64_t> sums;   // that sizes.json has of all local shards; nothing: not of each

  // After survey_samples(): of each shard the numbers of the samples that are taken, which `sizes` and
  // `total` count then; what the shards hold; and what is not taken. Without a filter empty and 0.
  std::vector<std::vector<std::uint32_t>> taken;
  std::vector<std::int64_t> stored;
  std::int64_t left_out = 0;
  std::optional<std::uint64_t> taken_key;  // of all numbers in `taken`
  // How long the samples that are taken are; empty where nobody asked. And a key of all lengths.
  std::vector<std::vector<std::int32_t>> lengths;
  std::optional<std::uint64_t> length_key;

  // Where the shard's sample `place` of those that are taken lies among all that it holds, and how many it
  // holds.
  std::int64_t number_of(std::size_t shard, std::int64_t place) const {
    return taken.empty() ? place : taken[shard][static_cast<std::size_t>(place)];
  }
  std::int64_t stored_in(std::size_t shard) const { return stored.empty() ? sizes[shard] : stored[shard]; }
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

// Does `work` for each shard, on several threads, and gives the error of the first shard that has one.
base::Status for_each_shard(const std::vector<std::string>& urls,
                            const std::function<base::Status(std::size_t)>& work);

// Reads the local shards of which sizes.json has a sum. kFailedPrecondition where one is not what it says.
base::Status check_sums(const std::vector<std::string>& urls);

// Whether a shard is packed: by its name, and by the first bytes of a local file.
bool is_packed(const std::string& url);

// False for `-` and `pipe:`.
bool can_be_read_again(const std::string& url);

}  // namespace sluice::data
