// The contents of shards, and the problems in them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

// The contents of one shard by its headers.
struct ShardListing {
  std::string url;
  std::int64_t samples = 0;
  std::int64_t members = 0;                        // members of samples
  std::int64_t left_out = 0;                       // folders, links, names without an extension, metadata
  std::uint64_t bytes = 0;                         // of the archive, unpacked
  std::uint64_t payload = 0;                       // of all members
  std::map<std::string, std::int64_t> extensions;  // members with each extension
  std::vector<std::string> keys;                   // if they were requested
};
base::Result<ShardListing> list_shard(const std::string& url, bool with_keys = false);

struct VerifyOptions {
  std::vector<std::string> urls;
  // The fields that each sample must have, as "jpg;png", "cls"; empty: the fields of the first sample.
  std::vector<std::string> fields;
  std::int64_t classes = 0;  // labels must be below; 0: any
  int workers = 0;           // shards at a time; 0: one for each core
  // Called with numbers of shards, from several threads, one at a time.
  std::function<void(std::int64_t done, std::int64_t total)> progress;
  // Reports samples that repeat others, as fatal problems if the other is from another set. `likeness`: the
  // bits of images' likeness that may differ (duplicates.h); nothing: only equal bytes count.
  bool duplicates = false;
  std::optional<int> likeness{};
  std::vector<std::size_t> sets{};  // the set of each shard, as a number; empty: all shards are one set
};

struct Problem {
  std::string shard;
  std::string what;   // complete: with member and offset
  bool fatal = true;  // false: nothing is lost, but readers leave something out
};

struct VerifyReport {
  std::int64_t shards = 0, samples = 0, members = 0;
  std::int64_t unsummed = 0;  // shards without a checksum in sizes.json
  std::uint64_t bytes = 0;
  std::vector<Problem> problems;           // in the shards' order
  std::int64_t duplicates = 0, leaks = 0;  // samples that repeat one of their own set; of another set
  std::int64_t failures() const;           // the number of fatal problems
};

// Reads everything, decodes what can be decoded, and compares checksums if sizes.json has them. Continues
// after each problem: at the next member, or at the next shard if the archive itself is damaged. Fails only
// if nothing can be checked at all.
base::Result<VerifyReport> verify(const VerifyOptions& options);

}  // namespace sluice::data
