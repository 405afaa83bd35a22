// Writing of a set of shards: PREFIX-0000.tar, PREFIX-0001.tar, …
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/shards/shard_index.h"

namespace sluice::data {

struct ShardOptions {
  std::string folder;  // made if it is missing; or a place in a bucket, see shard_upload.h
  std::string prefix = "train";
  std::int64_t shard_size = 2000;  // samples in a shard; the last one may have fewer
  bool overwrite = false;          // replaces shards of the same prefix; without it they are an error
  // Called now and then, by one thread at a time.
  std::function<void(std::int64_t done, std::int64_t total)> progress;
  int workers = 0;          // shards written at a time; 0: one for each core
  std::string fingerprint;  // of the samples' sources; empty: a stopped run is not continued
  // The lines of classes.txt, which is the last file of a set; empty: no such file.
  std::vector<std::string> classes = {};
  bool append = false;  // adds shards, with keys after the existing ones, to a set
};

struct ShardReport {
  std::int64_t samples = 0;  // written samples; with append, only the new ones
  std::uint64_t bytes = 0;
  std::vector<std::string> shards;  // paths
  std::int64_t continued = 0;       // shards that an earlier, stopped run had already written
};

// A sample to be written: its key and (extension, payload) pairs.
struct NewSample {
  std::string key;
  std::vector<std::pair<std::string, std::string>> members;
};

// Writes samples 0 … count − 1 as `produce` gives them; several threads call it. The set is written in a
// hidden folder next to its place and moved there when it is whole: after an error or a kill there is no set
// that looks complete but is not. Next to each shard is its index file, and sizes.json gets the samples and
// checksums of all. A killed run leaves its finished shards in the hidden folder, and the next run with the
// same fingerprint continues from there. After an error nothing is left, except in a bucket (shard_upload.h).
// With `append`, shards are numbered after the set's last one, and keys after the largest numeric key.
base::Result<ShardReport> write_shards(std::int64_t count,
                                       const std::function<base::Result<NewSample>(std::int64_t)>& produce,
                                       const ShardOptions& options);

// Returns the folder's sizes.json without the shards of this prefix: other sets may be in it. Empty if the
// file is missing.
base::Result<ShardSizes> sizes_of_other_sets(const ShardOptions& options);

// Replaces a file or an object with lines of text, such as the names of the classes.
base::Status write_lines(const std::string& path, const std::vector<std::string>& lines);

// Removes unfinished shards, index files and lists that killed programs of this machine left in the folder of
// a set, under names such as train-0000.tar.tmp-PID-0.
void remove_leftovers(const std::string& folder);

// Returns a key such as "0000042", as webdataset's own writers name samples.
std::string sample_key(std::int64_t index);

}  // namespace sluice::data
