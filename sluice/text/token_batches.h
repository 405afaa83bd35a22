// Batches of token ids for language models, of fixed shapes: a data::Dataset over token files.
//
//   sluice::text::TokenBatchOptions options;
//   options.shapes = {{16, 512}, {32, 256}, {64, 128}};  // each batch has one of these
//   sluice::text::TokenBatches train(sluice::text::TokenSet::open("tokens/train-*.bin"), options);
//
// The order depends on the seed, the epoch and the rows of all replicas together, not on hosts or timing. A
// run can resume exactly at any place in it. Errors are sluice::Error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/data/length_shape.h"
#include "sluice/data/stream.h"
#include "sluice/text/token_file.h"

SLUICE_API_BEGIN
namespace sluice::text {

// The content of a row of a batch.
enum class RowKind {
  kRunning,    // a window of the set, read as one text; documents are not kept apart
  kDocuments,  // a document, in the shortest shape that holds it
  kPacked,     // as many whole documents, in sequence, as fit
};

// The treatment of a document that is longer than any row.
enum class LongDocument {
  kError,
  kCut,    // its end is left out, and counted in the facts
  kSplit,  // it becomes several rows
};

// Masked language modelling as in BERT and RoBERTa: of the tokens to predict, 80 % become the mask token, 10
// % a random one, and 10 % stay. The choice depends only on the seed, the epoch and the row.
struct MaskingOptions {
  double share = 0.15;                    // of a row's tokens, rounded, but at least one
  std::uint32_t mask = 0;                 // the mask token
  std::uint64_t vocabulary = 0;           // random tokens have ids below this
  std::vector<std::uint32_t> never = {};  // ids that are never predicted, such as the special tokens
};

struct TokenBatchOptions {
  RowKind kind = RowKind::kRunning;
  // The shapes of one replica's batches. Running and packed rows have one shape. Documents wait until they
  // fill a batch of the shortest shape that holds them.
  std::vector<data::LengthShape> shapes = {{8, 1024}};
  LongDocument long_document = LongDocument::kError;
  // For models that predict the next token: running rows have one more token, which also begins the next row,
  // and documents with fewer than two tokens are left out.
  bool next_token = false;
  std::optional<std::uint32_t> begin = {}, end = {};  // put around each document, or each running row
  std::uint32_t padding = 0;                          // fills rows up
  std::optional<MaskingOptions> masking = {};
  std::uint64_t vocabulary = 0;  // above 0: an id that is not below it is an error that names its place
  bool shuffle = true;
  std::uint64_t seed = 0;
  bool pad = false;  // for tests: empty rows complete the last batches; else their rows are left out
  std::int64_t packing_window = 1024;  // the number of packed rows that are open at a time
};

// The contents of an epoch.
struct TokenBatchFacts {
  std::uint64_t documents = 0;  // in the rows; for running text, in the set
  std::uint64_t tokens = 0;     // of the set, in the rows
  std::uint64_t rows = 0;
  std::uint64_t places = 0;           // in these rows
  std::uint64_t filled = 0;           // places that are not padding: tokens, and those put around documents
  std::uint64_t short_documents = 0;  // left out: they have nothing to predict
  std::uint64_t cut_documents = 0, cut_tokens = 0;
  std::uint64_t split_documents = 0;
  std::uint64_t dropped_rows = 0, dropped_tokens = 0;  // they fill no batch
};
// Returns, for example, "31,102 documents with 1,141,471 tokens in 4,483 rows, 0.4 % of them padding; 3
// documents cut by 512 tokens in all".
std::string text_of(const TokenBatchFacts& facts);

// The columns of a batch of N rows of length L, all int64 unless said otherwise:
//   0: ids [N, L], of running text for the next token [N, L + 1]
//   kDocuments: 1: the rows' lengths [N]
//   kPacked: 1: for each place its document in the row, from 1 on, and 0 for padding, int32 [N, L]; 2: its
//     place in the document, from 0 on, int32 [N, L]
//   with masking, after these: the places to predict [N, P] and their tokens [N, P], -100 where the row has
//     fewer; P is share × L, rounded.
// Threads: any number of them may call const members.
class TokenBatches : public data::Dataset {
 public:
  // Throws kInvalidArgument for contradictory options, and for a set that fills no row.
  TokenBatches(TokenSet set, TokenBatchOptions options);

  std::unique_ptr<data::Stream> open(const data::OpenOptions& options) const override;
  std::unique_ptr<data::Stream> resume(const std::string& state,
                                       const data::OpenOptions& options) const override;
  std::string state(const data::OpenOptions& options) const override;
  std::int64_t size() const override;  // rows of epoch 0
  std::int64_t batches(std::int64_t replicas, std::int64_t epoch) const override;
  std::int64_t batch_size() const override;  // the batch size of the longest shape
  data::Remainder remainder() const override;
  const std::vector<float>& mean() const override;
  const std::vector<float>& deviation() const override;

  // Runs through the epoch without reading tokens, once for facts(), size(), batches() and
  // tokens_of_batches(). The result for more than 10,000 documents is kept in ~/.cache/sluice/surveys.
  TokenBatchFacts facts(std::int64_t replicas, std::int64_t epoch = 0) const;
  // Returns each batch's tokens, on all replicas, as facts() counts them.
  std::vector<std::uint64_t> tokens_of_batches(std::int64_t replicas, std::int64_t epoch) const;
  // Returns the number of predictions in each row of this length.
  std::int64_t predictions(std::int64_t length) const;

  struct State;

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace sluice::text
SLUICE_API_END
