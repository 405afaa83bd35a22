// Where the shards of a set are until all are written: a hidden folder on a disk or in a bucket.
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

// Where the shards and the samples of a set begin that are written.
struct SetStart {
  std::int64_t shard = 0;  // number in the first shard's name
  std::size_t width = 4;   // its digits
  std::int64_t key = 0;    // of the first sample
};

// The small file of a store: the set's fingerprint, where it begins, and whether its shards are being moved.
// As long as it is there, the same set goes on where it was.
inline constexpr char kStoreFile[] = "fingerprint";

// Threads: kept() and keep() from several, the others from one.
class ShardStore {
 public:
  virtual ~ShardStore() = default;
  virtual std::string folder() const = 0;  // on this machine: in it a shard and its index file are written
  virtual std::string place() const = 0;   // the hidden folder: its small files are there
  // The names of the shards of this prefix that the set's place has.
  virtual base::Result<std::vector<std::string>> existing() const = 0;
  virtual base::Status clear() = 0;  // an empty hidden folder
  virtual void remove() = 0;         // none: the small file goes last
  // After an error of writing, which it returns, perhaps with what to do.
  virtual Error give_up(const Error& error) = 0;
  // What an earlier run kept of this name.
  virtual base::Result<std::optional<ShardSum>> kept(const std::string& name) = 0;
  virtual base::Status keep(const std::string& path) = 0;  // a shard that was written, with its index file
  virtual void goes_on_moving() = 0;  // an earlier run began to: shards may be at the set's place already
  virtual base::Status remove_old(const std::string& name) = 0;
  virtual base::Status move(
      const std::vector<std::string>& names) = 0;  // to the set's place, with index files

  base::Result<std::optional<std::string>> read(const std::string& name) const;
  base::Status write(const std::string& name, const std::string& text) const;
};

bool is_shard_of(const std::string& name, const std::string& prefix);  // PREFIX-NUMBER.tar
// write_shards over any store.
base::Result<ShardReport> write_set(std::int64_t count,
                                    const std::function<base::Result<NewSample>(std::int64_t)>& produce,
                                    const ShardOptions& options, ShardStore& store);

}  // namespace sluice::data
