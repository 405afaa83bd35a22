// Writing a set of shards: PREFIX-0000.tar, PREFIX-0001.tar, …
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
  std::string folder;  // made when it is missing; or a place in a bucket, see shard_upload.h
  std::string prefix = "train";
  std::int64_t shard_size = 2000;  // samples in a shard; the last one may have fewer
  bool overwrite = false;          // replaces shards of the same prefix; without it they are an error
  std::function<void(std::int64_t done, std::int64_t total)>
      progress;     // called now and then, by one thread at a time
  int workers = 0;  // shards written at a time; 0: one for each core
  std::string
      fingerprint;  // of everything that the samples are made of; empty: a stopped run is not continued
  std::vector<std::string> classes =
      {};               // lines of classes.txt, which is the last file of a set; empty: none
  bool append = false;  // adds shards, and samples with keys that go on, to those that are there
};

struct ShardReport {
  std::int64_t samples = 0;  // those that were written; of a set that was appended to, the new ones
  std::uint64_t bytes = 0;
  std::vector<std::string> shards;  // paths
  std::int64_t continued = 0;       // shards that an earlier run, which was stopped, had written already
};

// A sample to be written: its key and (extension, payload) pairs.
struct NewSample {
  std::string key;
  std::vector<std::pair<std::string, std::string>> members;
};

// Writes samples 0 … count − 1 as `produce` gives them; several threads call it. The set is written in a
// hidden folder beside its place and moved there when it is whole: after an error or a kill there is no set
// that looks complete but is not. Beside each shard is its index file, and sizes.json gets the samples and
// checksums of all. A run that was killed leaves its finished shards in the hidden folder, and the next one
// with the same fingerprint goes on from there, wherever it was killed; after an error nothing is left, but
// in a bucket (shard_upload.h). With `append`, the shards' numbers go on where those of the set end, and the
// keys behind the largest that is a number.
base::Result<ShardReport> write_shards(std::int64_t count,
                                       const std::function<base::Result<NewSample>(std::int64_t)>& produce,
                                       const ShardOptions& options);

// The sizes.json of the folder, without the shards of this prefix: other sets may stand in it. Empty when
// there is none.
base::Result<ShardSizes> sizes_of_other_sets(const ShardOptions& options);

// Replaces a file or an object with lines of text, such as the names of the classes.
base::Status write_lines(const std::string& path, const std::vector<std::string>& lines);

// Removes what programs of this machine that were killed left in the folder of a set: unfinished shards,
// index files and lists, under names such as train-0000.tar.tmp-PID-0.
void remove_leftovers(const std::string& folder);

// "0000042": as webdataset's own writers name samples.
std::string sample_key(std::int64_t index);

}  // namespace sluice::data
