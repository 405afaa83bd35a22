// MDS, the format of MosaicML's Streaming: a folder with index.json and shards.
//
// index.json lists the shards. A shard is, with little-endian numbers:
//   uint32 n, uint32 begin[n + 1]   where the samples begin, and the last one ends, in bytes of the file
//   a JSON text                     which repeats what the index says
//   n samples                       for each value of variable size its bytes (uint32), then all values
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

struct MdsColumn {
  std::string name, encoding;         // as in the index: "jpeg", "ndarray:uint16"
  std::optional<std::uint32_t> size;  // bytes of each value; nothing: they differ
  bool operator==(const MdsColumn&) const = default;
};

struct MdsFile {
  std::string name;  // relative to the set's folder
  std::uint64_t bytes = 0;
  std::map<std::string, std::string> hashes;  // hexadecimal, by the names of their kinds
};

struct MdsShardFacts {
  std::vector<MdsColumn> columns;
  std::string compression;  // "zstd:7", …; empty: none
  MdsFile raw;
  std::optional<MdsFile> packed;
  std::int64_t samples = 0;
};

// Parses index.json. kDataLoss if it is not an index, kInvalidArgument if it has another format or version.
base::Result<std::vector<MdsShardFacts>> parse_mds_index(std::string_view text);

// A shard in memory. Threads: any.
class MdsShard {
 public:
  // kDataLoss for a shard that is cut off or has another number of samples.
  static base::Result<MdsShard> parse(std::string bytes, std::vector<MdsColumn> columns,
                                      std::int64_t samples);

  std::int64_t samples() const { return samples_; }
  // Returns the values of a sample, in the order of the columns; they live as long as the shard.
  base::Result<std::vector<std::string_view>> sample(std::int64_t place) const;

 private:
  std::uint32_t number(std::uint64_t at) const;
  std::string bytes_;
  std::vector<MdsColumn> columns_;
  std::int64_t samples_ = 0;
};

// A set in a folder or a bucket. Threads: any.
class MdsSet {
 public:
  // `folder`: the folder of index.json, or index.json itself. All shards have the same columns.
  static base::Result<MdsSet> open(const std::string& folder);

  const std::vector<MdsColumn>& columns() const { return shards_.front().columns; }
  const std::vector<MdsShardFacts>& shards() const { return shards_; }
  std::int64_t samples() const { return samples_; }
  std::string name(std::size_t shard) const;           // a shard's name for messages
  const std::string& index() const { return index_; }  // the text of index.json
  // Reads a shard, unpacks it if it is packed (zstd, gzip), and compares sizes and hashes with the index.
  base::Result<std::shared_ptr<const MdsShard>> read(std::size_t shard) const;
  // Returns the kinds of hashes in the index that are not compared, because Sluice does not compute them.
  std::set<std::string> unknown_hashes() const;

 private:
  base::Result<std::string> read_bytes(const MdsShardFacts& facts) const;
  std::string folder_, index_;
  std::vector<MdsShardFacts> shards_;
  std::int64_t samples_ = 0;
};

}  // namespace sluice::data
