// Where the samples of shards begin, as far as that is found out only while shards are read: by an index that
// is read when its shard is opened, or by readers of a shard without an index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/shards/source.h"

namespace sluice::data {

// Threads: all members from any thread.
class ShardPlaces {
 public:
  // `later`: for each shard, whether it has an index that was not read yet. `sizes`: the samples of each
  // shard as sizes.json says them.
  ShardPlaces(std::vector<std::string> urls, std::vector<std::int64_t> sizes, std::vector<bool> later);

  // Reads the index of a shard if there is one and it was not read yet. kFailedPrecondition if it has another
  // number of samples than sizes.json.
  base::Status load(std::size_t shard);
  // Whether any index was not read yet.
  bool is_waiting() const;
  // Reads the indexes of several shards, some at a time. An error is met again when the shard is opened.
  void load_all(const std::vector<std::size_t>& shards);
  // Returns where the samples begin by the index that load() has read, which never changes again; empty
  // without one. `end`: of the last sample.
  const std::vector<std::uint64_t>& starts(std::size_t shard) const;
  std::uint64_t end(std::size_t shard) const;
  // Whether the shard has an index, read or not.
  bool has_index(std::size_t shard) const;

  // A sample where a reader may begin, and the largest number of members of the samples before it.
  struct Place {
    std::int64_t sample = 0;
    std::uint64_t offset = 0;
    std::size_t members = 0;
  };
  // Records where a sample of a shard without an index begins, if all samples before it are recorded.
  void learn(std::size_t shard, const Place& place);
  // Returns the last known place at or before a sample, which is the shard's start if nothing is known.
  Place last_before(std::size_t shard, std::int64_t sample) const;
  // Records how the shard is packed. Places are offsets in the unpacked bytes.
  void set_packing(std::size_t shard, Packing packing);
  // Whether the shard may be packed: false once it was found to be plain.
  bool may_be_packed(std::size_t shard) const;
  // Returns the places from which the shard can be unpacked. Only a few shards have places at a time.
  std::shared_ptr<UnpackPlaces> unpacking(std::size_t shard);
  // Counts the readers of a zstd shard that unpack it from its start to get to a sample in the middle, and
  // warns once of a large shard with many.
  void count_passage(std::size_t shard, std::uint64_t bytes);

 private:
  struct Known {
    bool later = false;
    std::optional<Packing> packing;
    std::vector<std::uint64_t> starts;  // by the index
    std::uint64_t end = 0;
    std::vector<std::uint64_t> learned;                              // of samples 1, 2, …
    std::vector<std::pair<std::int64_t, std::size_t>> members_from;  // from a sample on: in ascending order
    std::int64_t passages = 0;
  };

  const std::vector<std::string> urls_;
  const std::vector<std::int64_t> sizes_;
  mutable std::mutex mutex_;
  std::vector<Known> known_;
  std::list<std::pair<std::size_t, std::shared_ptr<UnpackPlaces>>> unpacking_;  // the latest shard first
  std::size_t unread_ = 0;                                                      // indexes
  bool warned_ = false;
};

}  // namespace sluice::data
