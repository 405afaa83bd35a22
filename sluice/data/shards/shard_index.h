// Index files: the positions of a shard's samples, so that a reader can begin at any of them.
//
// The format is DALI's wds2idx, version 1.2: a line "v1.2 SAMPLES", then a line for each sample with
// "EXTENSION OFFSET SIZE NAME" of each of its members, all separated by single spaces. OFFSET is the position
// of the member's payload in the tar archive, SIZE its bytes, NAME its name in the archive. The file is next
// to its shard: train-0000.idx next to train-0000.tar.
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
  std::uint64_t offset = 0;  // of the payload; in a packed shard, after unpacking
  std::uint64_t size = 0;    // bytes of payload
  std::string name;
};

struct ShardIndex {
  std::vector<std::vector<IndexedMember>> samples;

  // Returns where each sample may be read from: the end of the sample before it, rounded up to tar's blocks
  // of 512 bytes. Members between (folders, names that readers leave out) do no harm.
  std::vector<std::uint64_t> starts() const;
  std::uint64_t end() const;  // of the last sample, rounded up in the same way; 0 without samples
};

// Reads the headers of a shard, packed or not; reads all of it if its sum is requested.
base::Result<ShardIndex> index_shard(const std::string& url, ShardSum* sum = nullptr);

// Returns the text of an index file. White space in a name is written as %20 and the like, because the format
// has no form for it. Readers that know only the format take the escape for the name.
base::Result<std::string> format_index(const ShardIndex& index);
// Parses the text of an index file. `name` is the file's, for errors.
base::Result<ShardIndex> parse_index(std::string_view text, const std::string& name);

// Returns the name of a shard's index file: "a/train-0000.tar.gz" → "a/train-0000.idx".
std::string index_path(std::string_view url);
// Reads the index file next to a shard; nothing if the file is missing.
base::Result<std::optional<ShardIndex>> read_index(const std::string& url);
// Writes the index file next to a shard.
base::Status write_index(const std::string& url, const ShardIndex& index);

// Returns the keys of a shard's samples, in their order: from its index file, or its headers.
base::Result<std::vector<std::string>> keys_of_shard(const std::string& url);

// Reads the whole of a small file or object; nothing if it is missing.
base::Result<std::optional<std::string>> read_text(const std::string& url);
// Returns the names of classes 0, 1, … of a shard from classes.txt in its folder, as `sluice data pack`
// writes it. Empty if there is no such file, or it cannot be read.
std::vector<std::string> class_names(const std::string& shard);
// Replaces a small file, on a disk or in a bucket: complete or not at all.
base::Status write_text(const std::string& url, const std::string& text);

// The entries of sizes.json: {"train-0000.tar": 2000, …}, the samples of a folder's shards, as webdataset's
// tools write it; names that are not UTF-8 as in base/formats/json_bytes.h. One entry is Sluice's own:
// "checksums":
// {"train-0000.tar": {"bytes": …, "crc32c": …}, …}, the sums of the shards as Cloud Storage writes them.
struct ShardRecord {
  ShardRecord(std::int64_t samples = 0) : samples(samples) {}
  ShardRecord(std::int64_t samples, const ShardSum& sum) : samples(samples), sum(sum) {}

  std::int64_t samples;
  std::optional<ShardSum> sum;
};
using ShardSizes = std::map<std::string, ShardRecord, std::less<>>;
base::Result<ShardSizes> parse_sizes(std::string_view text, const std::string& name);
std::string format_sizes(const ShardSizes& sizes);
// Reads sizes.json in the shard's folder; nothing if the file is missing.
base::Result<std::optional<ShardSizes>> read_sizes(const std::string& url);

// Reads the sizes.json of each folder once. Threads: any.
class FolderSizes {
 public:
  // Returns the record of a shard; nothing if sizes.json has no entry for it.
  base::Result<std::optional<ShardRecord>> find(const std::string& url);

 private:
  std::mutex mutex_;
  std::map<std::string, std::optional<ShardSizes>, std::less<>> folders_;
};

}  // namespace sluice::data
