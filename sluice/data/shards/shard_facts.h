// Facts about all shards that an epoch's order needs: how many samples each shard holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/shards/shard_places.h"
#include "sluice/data/shards/source.h"

namespace sluice::data {

struct ShardFacts {
  std::vector<std::int64_t> sizes;  // samples of each shard
  // The offset of each sample in the archive; empty for a packed shard, or if the offsets are not known.
  std::vector<std::vector<std::uint64_t>> starts;
  std::vector<std::uint64_t> ends;  // the end of each shard's last sample, where its starts are known
  // The offsets that are found out when shards are opened; null: no others than these.
  std::shared_ptr<ShardPlaces> places;
  std::int64_t total = 0;         // samples of all shards
  std::uint64_t bytes = 0;        // of all shards, unpacked where that size is known; 0: not known
  std::uint64_t fingerprint = 0;  // a key of the shards' names and sizes, in their order
  // The content of each shard, as SourceFacts::version; empty if it is not known.
  std::vector<std::string> versions;
  // The sum of each shard's bytes in sizes.json, unless the bytes were already compared with it.
  std::vector<std::optional<ShardSum>> unread_sums;
  // A key of all contents that is the same for copies of the shards elsewhere: it is made of the versions of
  // remote shards and the sizes of local ones.
  std::uint64_t content = 0;
  std::optional<std::uint64_t> times;  // a key of the local shards' times of change; nothing: all are remote
  std::optional<std::uint64_t>
      sums;  // a key of the local shards' sums in sizes.json; nothing: one is missing

  // Set by survey_samples(), with a filter (else empty and 0): the numbers of each shard's samples that are
  // taken, which `sizes` and `total` then count; the samples that each shard holds; and those not taken.
  std::vector<std::vector<std::uint32_t>> taken;
  std::vector<std::int64_t> stored;
  std::int64_t left_out = 0;
  std::optional<std::uint64_t> taken_key;  // a key of all numbers in `taken`
  // The lengths of the samples that are taken, empty if nobody asked for them, and a key of all lengths.
  std::vector<std::vector<std::int32_t>> lengths;
  std::optional<std::uint64_t> length_key;
  // Whether `content` has ETags from S3's lists. It is then another key than by requests for the same shards,
  // which may give checksums, and is compared only with keys of this kind.
  bool tagged = false;

  // number_of() converts an index among the shard's samples that are taken to an index among all its samples;
  // stored_in() returns the number of samples that the shard holds.
  std::int64_t number_of(std::size_t shard, std::int64_t place) const {
    return taken.empty() ? place : taken[shard][static_cast<std::size_t>(place)];
  }
  std::int64_t stored_in(std::size_t shard) const { return stored.empty() ? sizes[shard] : stored[shard]; }
  // starts_of() returns the offsets of a shard's samples that are known now, and end_of_last() where the last
  // one ends; empty and 0 if they are not known.
  const std::vector<std::uint64_t>& starts_of(std::size_t shard) const {
    return starts[shard].empty() && places ? places->starts(shard) : starts[shard];
  }
  bool is_indexed(std::size_t shard) const {
    return !starts[shard].empty() || (places && places->has_index(shard));
  }
  std::uint64_t end_of_last(std::size_t shard) const {
    return starts[shard].empty() && places ? places->end(shard) : ends[shard];
  }
};

struct LearnOptions {
  std::int64_t shard_size = 0;  // that every shard holds, so that none is read; 0: count
  // A damaged shard whose samples neither an index nor sizes.json counts is taken to hold the samples before
  // the damage (one warning). The number of lost samples is then not known.
  bool allow_unknown_loss = false;
  bool skip_damaged = false;  // damage is skipped when samples are read: the error then names what is needed
  const std::atomic<bool>* cancelled = nullptr;
  std::string cache_folder;  // for shards that have to be read, as in SourceOptions
  std::uint64_t cache_bytes = 0;
};

// Learns each shard's facts from its index file, else its folder's sizes.json, else its own headers (several
// shards at a time). If a bucket's list and sizes.json say everything about a shard, nothing is requested for
// it, and its index is read when it is opened. So is the index of a local shard that sizes.json counts, if
// there are 16 shards or more. `-` and `pipe:` are an error: they can be read only once.
base::Result<ShardFacts> learn_shards(const std::vector<std::string>& urls, const LearnOptions& options = {});

// Does `work` for each shard, on several threads, and returns the error of the first shard that has one.
base::Status for_each_shard(const std::vector<std::string>& urls,
                            const std::function<base::Status(std::size_t)>& work);

// Reads the local shards that have a sum in sizes.json. kFailedPrecondition if a shard's sum is another one.
base::Status check_sums(const std::vector<std::string>& urls);

// Whether a shard is packed: by its name, and by the first bytes of a local file.
bool is_packed(const std::string& url);

// Whether a shard can be read more than once: false for `-` and `pipe:`.
bool can_be_read_again(const std::string& url);

}  // namespace sluice::data
