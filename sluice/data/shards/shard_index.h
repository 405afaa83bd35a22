// Index files: where the samples of a shard lie, so that a reader can begin at any of them.
//
// The format is that of DALI's wds2idx, version 1.2: a line "v1.2 SAMPLES", then a line for each sample with
// "EXTENSION OFFSET SIZE NAME" of each of its members, all separated by single spaces. OFFSET is where the
// member's payload begins in the tar archive, SIZE its bytes, NAME its name in the archive. Such a file
// stands beside its shard: train-0000.idx beside train-0000.tar.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/shards/source.h"

namespace sluice::data {

struct IndexedMember {
  std::string extension;     // everything after the name's first dot, as written
  std::uint64_t offset = 0;  // of the payload; of a packed shard, after unpacking
  std::uint64_t size = 0;    // bytes of payload
  std::string name;
};

struct ShardIndex {
  std::vector<std::vector<IndexedMember>> samples;

  // Where each sample may be read from: the end of the sample before it, rounded up to tar's blocks of 512
  // bytes. What lies between (folders, names that readers leave out) does no harm.
  std::vector<std::uint64_t> starts() const;
  std::uint64_t end() const;  // of the last sample, rounded up like this; 0 without samples
};

// Reads the headers of a shard, packed or not; all of it where its sum is asked for.
base::Result<ShardIndex> index_shard(const std::string& url, ShardSum* sum = nullptr);

// Samples in a shard, counted by its headers.
base::Result<std::int64_t> count_samples(const std::string& url);

// The text of an index file. White space in a name is written as %20 and the like: the format has no form of
// its own for it, and readers that know only the format take it for the name.
base::Result<std::string> format_index(const ShardIndex& index);
// `name` is the file's, for errors.
base::Result<ShardIndex> parse_index(std::string_view text, const std::string& name);

// "a/train-0000.tar.gz" → "a/train-0000.idx"
std::string index_path(std::string_view url);
// The index file beside a shard; nothing when there is none.
base::Result<std::optional<ShardIndex>> read_index(const std::string& url);
// Writes it there.
base::Status write_index(const std::string& url, const ShardIndex& index);

// The keys of a shard's samples, in their order: from its index file, or its headers.
base::Result<std::vector<std::string>> keys_of_shard(const std::string& url);

// The whole of a small file or object; nothing when there is none.
base::Result<std::optional<std::string>> read_text(const std::string& url);
// The names of classes 0, 1, … of a shard: classes.txt in its folder, as `sluice data pack` writes it. None
// when there is no such file, or it cannot be read.
std::vector<std::string> class_names(const std::string& shard);
// Replaces a small file, on a disk or in a bucket: complete or not at all.
base::Status write_text(const std::string& url, const std::string& text);

// sizes.json: {"train-0000.tar": 2000, …}, the samples of the shards of a folder, as webdataset's tools write
// it; names that are not UTF-8 as in base/json_bytes.h. One entry is ours: "checksums": {"train-0000.tar":
// {"bytes": …, "crc32c": …}, …}, the sums of the shards as Cloud Storage writes them.
struct ShardRecord {
  ShardRecord(std::int64_t samples = 0) : samples(samples) {}
  ShardRecord(std::int64_t samples, const ShardSum& sum) : samples(samples), sum(sum) {}

  std::int64_t samples;
  std::optional<ShardSum> sum;
};
using ShardSizes = std::map<std::string, ShardRecord, std::less<>>;
base::Result<ShardSizes> parse_sizes(std::string_view text, const std::string& name);
std::string format_sizes(const ShardSizes& sizes);
// The file in the shard's folder; nothing when there is none.
base::Result<std::optional<ShardSizes>> read_sizes(const std::string& url);

// The sizes.json of each folder, read once. Threads: any.
class FolderSizes {
 public:
  // What is said of a shard.
  base::Result<std::optional<ShardRecord>> find(const std::string& url);

 private:
  std::mutex mutex_;
  std::map<std::string, std::optional<ShardSizes>, std::less<>> folders_;
};

}  // namespace sluice::data
