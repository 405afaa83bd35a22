// Which tokens of a set make the rows of an epoch's batches, as numbers: nothing is read.
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

// Tokens of the set in a row, of one document.
struct Piece {
  std::uint64_t begin = 0;  // in tokens of the set
  std::uint64_t count = 0;
};

struct Row {
  std::vector<Piece> pieces;
  std::uint64_t key = 0;  // other rows of the epoch have other ones
};

// One replica's rows stand behind each other: row j of the batch belongs to replica j mod N.
struct RowBatch {
  std::size_t shape = 0;  // of the options' shapes, the shortest first
  std::vector<Row> rows;  // of all replicas
};

// The batches of an epoch, in their order. What comes out depends on the set, the options, the epoch and the
// rows of all replicas together alone. Threads: one at a time.
class RowPlan {
 public:
  // `options`: with the shapes in ascending order of their lengths. Both must live as long.
  RowPlan(const TokenSet& set, const TokenBatchOptions& options, std::int64_t epoch, std::int64_t replicas);

  // False at the end of the epoch. Throws kInvalidArgument for a document that is too long.
  bool next(RowBatch& batch);
  // So many batches are passed over.
  void skip(std::int64_t batches);
  // Of what has come out so far; at the end of the epoch, of all.
  const TokenBatchFacts& facts() const { return facts_; }

 private:
  bool next_running(RowBatch& batch);
  bool next_of_documents(RowBatch& batch);
  void add_document(std::uint64_t number);
  void take_packed();
  // At the end of an epoch: rows that wait come into the next longer shape; true when it has a batch then.
  bool lengthen(std::size_t shape);
  bool give(std::size_t shape, RowBatch& batch);
  std::int64_t rows_of(std::size_t shape) const;
  std::int64_t length(std::size_t shape) const { return options_.shapes[shape].length; }

  const TokenSet& set_;
  const TokenBatchOptions& options_;
  std::int64_t epoch_, replicas_;
  std::uint64_t at_ = 0;                  // the place, in the epoch, of the window or document that comes
  std::uint64_t frame_;                   // tokens that are put around a document
  std::vector<std::deque<Row>> waiting_;  // by shape
  std::optional<data::SequencePacker> packer_;
  std::vector<data::PackedSequence> packed_;
  std::unordered_map<std::int64_t, Piece> pieces_;  // in the packer, by their numbers there
  bool ended_ = false;
  TokenBatchFacts facts_;
};

// Windows of running text in an epoch.
std::uint64_t running_rows(const TokenSet& set, const TokenBatchOptions& options);
// Tokens that are put around each document (or around each row of running text).
std::uint64_t frame_of(const TokenBatchOptions& options);

}  // namespace sluice::text
