// The place of a set's shards until all are written: a hidden folder on a disk or in a bucket.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/shards/source.h"
#include "sluice/data/tools/shard_set.h"

namespace sluice::data {

// Where the written shards and samples of a set begin.
struct SetStart {
  std::int64_t shard = 0;  // the number in the first shard's name
  std::size_t width = 4;   // the number of its digits
  std::int64_t key = 0;    // the key of the first sample
};

// The name of a store's small file, which has the set's fingerprint, where it begins, and whether its shards
// are being moved. While the file exists, the same set continues from there.
inline constexpr char kStoreFile[] = "fingerprint";

// Threads: kept() and keep() from several, the others from one.
class ShardStore {
 public:
  virtual ~ShardStore() = default;
  virtual std::string folder() const = 0;  // on this machine: a shard and its index file are written in it
  virtual std::string place() const = 0;   // the hidden folder: its small files are there
  // Returns the names of this prefix's shards at the set's place.
  virtual base::Result<std::vector<std::string>> existing() const = 0;
  virtual base::Status clear() = 0;  // makes the hidden folder empty
  virtual void remove() = 0;         // removes it; the small file goes last
  // Handles an error of writing, and returns it, perhaps with what to do.
  virtual Error give_up(const Error& error) = 0;
  // Returns the sum of a shard of this name that an earlier run kept.
  virtual base::Result<std::optional<ShardSum>> kept(const std::string& name) = 0;
  virtual base::Status keep(const std::string& path) = 0;  // a written shard, with its index file
  virtual void goes_on_moving() = 0;  // an earlier run began to move: some shards may be at the set's place
  virtual base::Status remove_old(const std::string& name) = 0;
  // Moves shards to the set's place, with their index files.
  virtual base::Status move(const std::vector<std::string>& names) = 0;

  base::Result<std::optional<std::string>> read(const std::string& name) const;
  base::Status write(const std::string& name, const std::string& text) const;
};

bool is_shard_of(const std::string& name, const std::string& prefix);  // PREFIX-NUMBER.tar
// Does the work of write_shards() with any store.
base::Result<ShardReport> write_set(std::int64_t count,
                                    const std::function<base::Result<NewSample>(std::int64_t)>& produce,
                                    const ShardOptions& options, ShardStore& store);

}  // namespace sluice::data
