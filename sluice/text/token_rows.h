// Plans which tokens of a set make the rows of an epoch's batches, without reading them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sluice/data/order/sequence_packer.h"
#include "sluice/text/token_batches.h"

namespace sluice::text {

// Consecutive tokens of one document in a row.
struct Piece {
  std::uint64_t begin = 0;  // in tokens of the set
  std::uint64_t count = 0;
};

struct Row {
  std::vector<Piece> pieces;
  std::uint64_t key = 0;  // different for each row of the epoch
};

// The rows of the replicas alternate: row j of the batch belongs to replica j mod N.
struct RowBatch {
  std::size_t shape = 0;  // the index in the options' shapes, the shortest first
  std::vector<Row> rows;  // of all replicas
};

// The batches of an epoch in order. They only depend on the set, the options, the epoch and the number of
// rows of all replicas together. Threads: one at a time.
class RowPlan {
 public:
  // The shapes of `options` are in ascending order of their lengths. Both arguments must outlive the plan.
  RowPlan(const TokenSet& set, const TokenBatchOptions& options, std::int64_t epoch, std::int64_t replicas);
  ~RowPlan();
  RowPlan(const RowPlan&) = delete;

  // Returns false at the end of the epoch. Throws kInvalidArgument for a document that is too long.
  bool next(RowBatch& batch);
  // Skips this number of batches.
  void skip(std::int64_t batches);
  // The facts of the batches so far; at the end of the epoch, of all.
  const TokenBatchFacts& facts() const { return facts_; }

 private:
  bool next_running(RowBatch& batch);
  bool next_of_documents(RowBatch& batch);
  void add_document(std::uint64_t number);
  void take_packed();
  // At the end of an epoch: moves waiting rows to the next longer shape; true if that now has a batch.
  bool lengthen(std::size_t shape);
  bool give(std::size_t shape, RowBatch& batch);
  std::int64_t rows_of(std::size_t shape) const;
  std::int64_t length(std::size_t shape) const { return options_.shapes[shape].length; }

  const TokenSet& set_;
  const TokenBatchOptions& options_;
  std::int64_t epoch_, replicas_;
  std::uint64_t at_ = 0;                  // the next window or document, as a place in the epoch
  std::uint64_t frame_;                   // the number of tokens put around a document
  std::vector<std::deque<Row>> waiting_;  // [shape]
  std::optional<data::SequencePacker> packer_;
  std::vector<data::PackedSequence> packed_;
  std::unordered_map<std::int64_t, Piece> pieces_;  // the packer's documents, by its numbers
  bool ended_ = false;
  TokenBatchFacts facts_;
};

// Returns how many documents, or windows of running text, all plans of the process have passed that are no
// longer there: what a start costs, for tests.
std::uint64_t passed_by_plans();

// Returns the number of windows of running text in an epoch.
std::uint64_t running_rows(const TokenSet& set, const TokenBatchOptions& options);
// Returns the number of tokens put around each document (or each row of running text).
std::uint64_t frame_of(const TokenBatchOptions& options);

}  // namespace sluice::text
