// What is in shards, and what is wrong with them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

// One shard as its headers tell.
struct ShardListing {
  std::string url;
  std::int64_t samples = 0;
  std::int64_t members = 0;                        // that belong to samples
  std::int64_t left_out = 0;                       // folders, links, names without an extension, metadata
  std::uint64_t bytes = 0;                         // of the archive, unpacked
  std::uint64_t payload = 0;                       // of the members
  std::map<std::string, std::int64_t> extensions;  // members of each
  std::vector<std::string> keys;                   // when asked for
};
base::Result<ShardListing> list_shard(const std::string& url, bool with_keys = false);

struct VerifyOptions {
  std::vector<std::string> urls;
  std::vector<std::string>
      fields;                // that each sample must have: "jpg;png", "cls"; empty: what the first sample has
  std::int64_t classes = 0;  // labels must be below; 0: any
  int workers = 0;           // shards at a time; 0: one for each core
  std::function<void(std::int64_t done, std::int64_t total)>
      progress;  // shards; from several threads, one at a time
  // Samples that repeat others are problems, fatal ones where the other is from another set. `likeness`: bits
  // of images' likeness that may differ (duplicates.h); nothing: only the same bytes count.
  bool duplicates = false;
  std::optional<int> likeness{};
  std::vector<std::size_t> sets{};  // of which set each shard is; empty: all are one
};

struct Problem {
  std::string shard;
  std::string what;   // complete: names member and offset
  bool fatal = true;  // false: nothing is lost, but readers leave something out
};

struct VerifyReport {
  std::int64_t shards = 0, samples = 0, members = 0;
  std::int64_t unsummed = 0;  // shards without a checksum in sizes.json
  std::uint64_t bytes = 0;
  std::vector<Problem> problems;           // in the shards' order
  std::int64_t duplicates = 0, leaks = 0;  // samples that repeat one of their set; one of another set
  std::int64_t failures() const;           // fatal ones
};

// Reads everything, decodes what can be decoded, and compares checksums where sizes.json has them. Goes on
// after each problem: at the next member, or at the next shard when the archive itself is damaged. Fails only
// when nothing can be checked at all.
base::Result<VerifyReport> verify(const VerifyOptions& options);

}  // namespace sluice::data
