// How many batches an epoch of documents has, and what is in them: counted in one pass over the lengths of
// the documents, and kept in a file, so that the next start need not count again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/text/token_batches.h"

namespace sluice::text {

struct EpochCount {
  TokenBatchFacts facts;
  std::vector<std::uint64_t> tokens;  // of each batch, on all replicas
};

// Runs through an epoch without reading tokens. Throws like RowPlan.
EpochCount count_epoch(const TokenSet& set, const TokenBatchOptions& options, std::int64_t epoch,
                       std::int64_t replicas);

// Returns what count_epoch() returns, from a file of `folder` if there is one. Else it counts, while other
// processes of this machine that need the same wait, and writes the file. `order` is a text that says on what
// the order of this epoch depends; the sizes and times of the set's files are added to it. An empty folder,
// or a set whose files cannot be looked at: always counts. Costs 4 bytes a batch in the file.
EpochCount kept_count(const TokenSet& set, const TokenBatchOptions& options, std::int64_t epoch,
                      std::int64_t replicas, const std::string& order, const std::string& folder);

}  // namespace sluice::text
