#include "sluice/text/token_rows.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "sluice/base/result.h"
#include "sluice/base/text/join.h"
#include "sluice/text/permutation.h"

namespace sluice::text {
namespace {

std::atomic<std::uint64_t> passed{0};

// Returns the smallest number of tokens from which a row can learn.
std::uint64_t shortest(const TokenBatchOptions& options) { return options.next_token ? 2 : 1; }

}  // namespace

std::uint64_t frame_of(const TokenBatchOptions& options) {
  return (options.begin ? 1 : 0) + (options.end ? 1 : 0);
}

std::uint64_t running_rows(const TokenSet& set, const TokenBatchOptions& options) {
  const std::uint64_t length = static_cast<std::uint64_t>(options.shapes.front().length) - frame_of(options);
  const std::uint64_t overlap = options.next_token ? 1 : 0;
  return set.tokens() < length + overlap ? 0 : (set.tokens() - overlap) / length;
}

RowPlan::RowPlan(const TokenSet& set, const TokenBatchOptions& options, std::int64_t epoch,
                 std::int64_t replicas)
    : set_(set),
      options_(options),
      epoch_(epoch),
      replicas_(replicas),
      frame_(frame_of(options)),
      waiting_(options.shapes.size()) {
  if (options.kind == RowKind::kPacked)
    packer_.emplace(options.shapes.front().length, options.packing_window, data::TooLong::kError);
}

RowPlan::~RowPlan() { passed += at_; }

std::uint64_t passed_by_plans() { return passed; }

std::int64_t RowPlan::rows_of(std::size_t shape) const { return options_.shapes[shape].rows * replicas_; }

bool RowPlan::next(RowBatch& batch) {
  batch.rows.clear();
  return options_.kind == RowKind::kRunning ? next_running(batch) : next_of_documents(batch);
}

void RowPlan::skip(std::int64_t batches) {
  if (options_.kind == RowKind::kRunning) {
    at_ += static_cast<std::uint64_t>(batches * rows_of(0));
    return;
  }
  RowBatch passed;
  for (std::int64_t i = 0; i < batches && next(passed); ++i) {
  }
}

bool RowPlan::next_running(RowBatch& batch) {
  const std::uint64_t all = running_rows(set_, options_);
  const auto wanted = static_cast<std::uint64_t>(rows_of(0));
  const std::uint64_t left = all - std::min(at_, all);
  const std::uint64_t length = static_cast<std::uint64_t>(options_.shapes.front().length) - frame_;
  facts_.documents = set_.documents();
  if (left == 0 || (left < wanted && !options_.pad)) {
    if (!std::exchange(ended_, true)) {
      facts_.dropped_rows += left;
      facts_.dropped_tokens += left * length;
    }
    return false;
  }
  batch.shape = 0;
  for (const std::uint64_t end = at_ + std::min(left, wanted); at_ < end; ++at_) {
    const std::uint64_t number =
        options_.shuffle ? permuted(at_, all, options_.seed, static_cast<std::uint64_t>(epoch_)) : at_;
    batch.rows.push_back({{{number * length, length + (options_.next_token ? 1 : 0)}}, number});
    facts_.tokens += length;
    facts_.filled += length + frame_;
  }
  facts_.rows += batch.rows.size();
  facts_.places += batch.rows.size() * (length + frame_);
  return true;
}

bool RowPlan::next_of_documents(RowBatch& batch) {
  for (;;) {
    for (std::size_t shape = 0; shape < waiting_.size(); ++shape)
      if (static_cast<std::int64_t>(waiting_[shape].size()) >= rows_of(shape)) return give(shape, batch);
    if (at_ < set_.documents()) {
      add_document(options_.shuffle
                       ? permuted(at_, set_.documents(), options_.seed, static_cast<std::uint64_t>(epoch_))
                       : at_);
      ++at_;
      continue;
    }
    if (!std::exchange(ended_, true)) {
      if (packer_) packer_->finish(packed_);
      take_packed();
      continue;
    }
    for (std::size_t shape = 0; shape < waiting_.size(); ++shape) {
      if (waiting_[shape].empty()) continue;
      if (options_.pad) return give(shape, batch);
      if (shape + 1 < waiting_.size()) {
        if (lengthen(shape)) return give(shape + 1, batch);
        continue;
      }
      facts_.dropped_rows += waiting_[shape].size();
      for (const Row& row : waiting_[shape])
        for (const Piece& piece : row.pieces) facts_.dropped_tokens += piece.count;
      waiting_[shape].clear();
    }
    return false;
  }
}

void RowPlan::add_document(std::uint64_t number) {
  const std::uint64_t longest = static_cast<std::uint64_t>(options_.shapes.back().length) - frame_;
  std::uint64_t begin = set_.begin(number), count = set_.length(number);
  if (count + frame_ < shortest(options_) || count == 0) {
    ++facts_.short_documents;
    return;
  }
  if (count > longest && options_.long_document == LongDocument::kError)
    throw_error(Code::kInvalidArgument,
                base::str("document ", number, " has ", count, " tokens", frame_ > 0 ? " and " : "",
                          frame_ > 0 ? base::str(frame_, " around them") : "", ": expected at most ", longest,
                          " for rows of ", options_.shapes.back().length,
                          "; choose a longer shape, or let long documents be split or cut"));
  ++facts_.documents;
  if (count > longest && options_.long_document == LongDocument::kCut) {
    ++facts_.cut_documents;
    facts_.cut_tokens += count - longest;
    count = longest;
  }
  if (count > longest) ++facts_.split_documents;
  while (count > 0) {
    const Piece piece{begin, std::min(count, longest)};
    begin += piece.count;
    count -= piece.count;
    const std::uint64_t used = piece.count + frame_;
    if (used < shortest(options_)) break;  // a split document's last token
    if (packer_) {
      pieces_[packer_->documents()] = piece;
      base::value_or_throw(packer_->add(static_cast<std::int64_t>(used), packed_));
      continue;
    }
    std::size_t shape = 0;
    while (static_cast<std::uint64_t>(length(shape)) < used) ++shape;
    waiting_[shape].push_back({{piece}, piece.begin});
  }
  take_packed();
}

void RowPlan::take_packed() {
  for (const data::PackedSequence& sequence : packed_) {
    Row row;
    for (const auto& one : sequence.documents) row.pieces.push_back(pieces_.extract(one.document).mapped());
    row.key = row.pieces.front().begin;
    waiting_.front().push_back(std::move(row));
  }
  packed_.clear();
}

bool RowPlan::lengthen(std::size_t shape) {
  auto& longer = waiting_[shape + 1];
  std::move(waiting_[shape].begin(), waiting_[shape].end(), std::back_inserter(longer));
  waiting_[shape].clear();
  return static_cast<std::int64_t>(longer.size()) >= rows_of(shape + 1);
}

bool RowPlan::give(std::size_t shape, RowBatch& batch) {
  auto& rows = waiting_[shape];
  const std::size_t count = std::min(rows.size(), static_cast<std::size_t>(rows_of(shape)));
  batch.shape = shape;
  for (std::size_t i = 0; i < count; ++i) {
    for (const Piece& piece : rows.front().pieces) {
      facts_.tokens += piece.count;
      facts_.filled += piece.count + frame_;
    }
    batch.rows.push_back(std::move(rows.front()));
    rows.pop_front();
  }
  facts_.rows += count;
  facts_.places += count * static_cast<std::uint64_t>(length(shape));
  return true;
}

}  // namespace sluice::text
