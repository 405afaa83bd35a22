#include "sluice/text/token_batches.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include "sluice/base/random.h"
#include "sluice/base/result.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/data/order/length_buckets.h"
#include "sluice/data/order/survey_file.h"
#include "sluice/data/serial_stream.h"
#include "sluice/data/stream_state.h"
#include "sluice/text/epoch_count.h"
#include "sluice/text/masking.h"
#include "sluice/text/token_rows.h"

namespace sluice::text {

struct TokenBatches::State {
  TokenSet set{{}};
  TokenBatchOptions options;
  std::string names, content;  // hashes of the set, for states

  mutable std::mutex mutex;
  mutable std::map<std::pair<std::int64_t, std::int64_t>, EpochCount> counts;  // [replicas, epoch]
  mutable std::optional<std::int64_t> size;

  // Returns the count of an epoch of documents. Under the mutex; until the next call.
  const EpochCount& count(std::int64_t replicas, std::int64_t epoch) const;
};

namespace {

using data::Array;
using data::ElementType;
using State = TokenBatches::State;

[[noreturn]] void refuse(const std::string& what) { throw_error(Code::kInvalidArgument, what); }

// Hashes the ids at both ends of each file, in which another set of the same sizes would differ.
std::string hash_of_ids(const TokenSet& set) {
  constexpr std::uint64_t kAtEachEnd = 1 << 16;
  std::uint64_t hash = 0;
  for (const TokenFile& file : set.files()) {
    const std::uint64_t count = std::min(kAtEachEnd, file.tokens());
    std::vector<std::uint32_t> ids(static_cast<std::size_t>(count));
    for (const std::uint64_t begin : {std::uint64_t{0}, file.tokens() - count}) {
      file.copy(begin, ids.size(), ids.data());
      hash = base::key({hash, base::key(std::string_view(reinterpret_cast<const char*>(ids.data()),
                                                         ids.size() * sizeof(std::uint32_t)))});
    }
  }
  return std::to_string(hash);
}

std::string hash_of_names(const TokenSet& set) {
  std::uint64_t hash = 0;
  for (const TokenFile& file : set.files()) {
    const std::string& path = file.name();
    hash = base::key({hash, base::key(std::string_view(path).substr(path.rfind('/') + 1)), file.tokens(),
                      file.documents()});
  }
  return std::to_string(hash);
}

const char* name_of(RowKind kind) {
  return kind == RowKind::kRunning ? "running" : kind == RowKind::kDocuments ? "documents" : "packed";
}

void check(const TokenBatchOptions& options) {
  if (options.shapes.empty()) refuse("batches of tokens need a shape, rows × length");
  if (options.kind != RowKind::kDocuments && options.shapes.size() != 1)
    refuse(base::str("rows that are filled up with tokens have one shape, not ",
                     data::shapes_text(options.shapes), ": several are for batches of single documents"));
  const std::int64_t least = static_cast<std::int64_t>(frame_of(options)) + (options.next_token ? 2 : 1);
  for (const auto& shape : options.shapes)
    if (shape.rows < 1 || shape.length < least)
      refuse(base::str("the shape ", shape.rows, "x", shape.length, ": expected one row of ", least,
                       " tokens at least"));
  for (std::size_t i = 1; i < options.shapes.size(); ++i)
    if (options.shapes[i].length == options.shapes[i - 1].length)
      refuse(base::str("the shapes ", data::shapes_text(options.shapes), ": two have the length ",
                       options.shapes[i].length));
  if (options.packing_window < 1)
    refuse(base::str("the packing window must be at least 1, not ", options.packing_window));
  if (!options.masking) return;
  if (!(options.masking->share > 0 && options.masking->share <= 1))
    refuse(base::str("the share of tokens to predict must be above 0 and at most 1, not ",
                     options.masking->share));
  if (options.masking->vocabulary <= options.masking->mask)
    refuse(base::str("the mask token ", options.masking->mask, " is not below the vocabulary's size ",
                     options.masking->vocabulary));
}

// The batches of one epoch for the replicas of one part.
class TokenStream : public data::SerialStream {
 public:
  TokenStream(std::shared_ptr<const State> state, const data::OpenOptions& options, std::string order)
      : SerialStream(options, std::move(order)),
        state_(std::move(state)),
        plan_(state_->set, state_->options, options.epoch, options.parts * options.replicas) {
    if (state_->options.masking) masking_.emplace(*state_->options.masking);
    plan_.skip(options.skip_batches);
  }

 private:
  std::optional<data::Batch> make() override;
  void fill(const Row& row, std::int64_t at, data::Batch& batch);
  std::int64_t put_piece(const Piece& piece, std::int64_t* ids);

  std::shared_ptr<const State> state_;
  RowPlan plan_;
  RowBatch planned_;
  std::optional<Masking> masking_;
  std::vector<std::uint32_t> ids_;  // the ids of one piece
};

std::optional<data::Batch> TokenStream::make() {
  if (!plan_.next(planned_)) return std::nullopt;
  const TokenBatchOptions& options = state_->options;
  const data::OpenOptions& part = this->options();
  const data::LengthShape shape = options.shapes[planned_.shape];
  const bool running = options.kind == RowKind::kRunning;
  const std::int64_t width = shape.length + (running && options.next_token ? 1 : 0);
  const std::int64_t rows = shape.rows * part.replicas, replicas = part.parts * part.replicas;
  data::Batch batch;
  const auto add = [&](ElementType type, std::vector<std::int64_t> sizes) {
    batch.columns.push_back({Array::zeros(type, std::move(sizes)), {}});
  };
  add(ElementType::kInt64, {rows, width});
  std::fill_n(batch.columns[0].array.data<std::int64_t>(), rows * width, options.padding);
  if (options.kind == RowKind::kDocuments) add(ElementType::kInt64, {rows});
  if (options.kind == RowKind::kPacked)
    for (int i = 0; i < 2; ++i) add(ElementType::kInt32, {rows, width});
  if (masking_) {
    const std::int64_t predictions = predictions_of(*options.masking, shape.length);
    for (int i = 0; i < 2; ++i) add(ElementType::kInt64, {rows, predictions});
    std::fill_n(batch.columns.back().array.data<std::int64_t>(), rows * predictions, -100);
  }
  batch.mask = Array::zeros(ElementType::kBool, {rows});
  for (std::int64_t r = 0; r < part.replicas; ++r) {
    std::int64_t row = r * shape.rows;
    for (auto j = static_cast<std::size_t>(part.part * part.replicas + r); j < planned_.rows.size();
         j += static_cast<std::size_t>(replicas), ++row) {
      batch.mask.data<bool>()[row] = true;
      batch.keys.push_back(base::str(planned_.rows[j].key));
      fill(planned_.rows[j], row, batch);
    }
  }
  batch.image = batch.columns[0].array;
  if (options.kind == RowKind::kDocuments) batch.lengths = batch.columns[1].array;
  batch.global_count = static_cast<std::int64_t>(planned_.rows.size());
  return batch;
}

std::int64_t TokenStream::put_piece(const Piece& piece, std::int64_t* ids) {
  const TokenBatchOptions& options = state_->options;
  std::int64_t* at = ids;
  if (options.begin) *at++ = *options.begin;
  ids_.resize(static_cast<std::size_t>(piece.count));
  state_->set.copy(piece.begin, ids_.size(), ids_.data());
  if (options.vocabulary > 0 &&
      std::any_of(ids_.begin(), ids_.end(), [&](std::uint32_t id) { return id >= options.vocabulary; }))
    state_->set.check(options.vocabulary, piece.begin, piece.count);  // throws, and names the id
  at = std::copy(ids_.begin(), ids_.end(), at);
  if (options.end) *at++ = *options.end;
  return at - ids;
}

void TokenStream::fill(const Row& row, std::int64_t at, data::Batch& batch) {
  const TokenBatchOptions& options = state_->options;
  const std::int64_t width = batch.columns[0].array.shape()[1];
  std::int64_t* const ids = batch.columns[0].array.data<std::int64_t>() + at * width;
  std::int64_t used = 0;
  std::int32_t document = 0;
  for (const Piece& piece : row.pieces) {
    const std::int64_t length = put_piece(piece, ids + used);
    if (options.kind == RowKind::kPacked) {
      auto* const documents = batch.columns[1].array.data<std::int32_t>() + at * width;
      auto* const places = batch.columns[2].array.data<std::int32_t>() + at * width;
      std::fill_n(documents + used, length, ++document);
      for (std::int64_t i = 0; i < length; ++i) places[used + i] = static_cast<std::int32_t>(i);
    }
    used += length;
  }
  if (options.kind == RowKind::kDocuments) batch.columns[1].array.data<std::int64_t>()[at] = used;
  if (!masking_) return;
  Array& places = batch.columns[batch.columns.size() - 2].array;
  Array& targets = batch.columns.back().array;
  const std::int64_t count = places.shape()[1];
  masking_->draw(base::key({options.seed, static_cast<std::uint64_t>(this->options().epoch), row.key, 1}),
                 used, ids, count, places.data<std::int64_t>() + at * count,
                 targets.data<std::int64_t>() + at * count);
}

// Describes everything that the order of an epoch depends on.
std::string order_of(const State& state, const data::OpenOptions& options) {
  const TokenBatchOptions& o = state.options;
  std::vector<data::LengthShape> global = o.shapes;
  for (auto& shape : global) shape.rows *= options.parts * options.replicas;
  std::string text = base::str("epoch=", options.epoch, " shards=", state.names, " content=", state.content,
                               " rows=", name_of(o.kind), " global_shapes=", data::shapes_text(global),
                               " next_token=", o.next_token ? 1 : 0, " frame=", frame_of(o),
                               " long=", static_cast<int>(o.long_document), " shuffle=", o.shuffle ? 1 : 0,
                               " seed=", o.seed);
  if (o.kind == RowKind::kPacked) text += base::str(" window=", o.packing_window);
  if (o.masking)
    text += base::str(" masked=", o.masking->share, ",", o.masking->mask, ",", o.masking->vocabulary, ",",
                      base::join(o.masking->never, "+"));
  return text;
}

// Whether a row comes out of the set. Looks at no more documents than it takes to fill a batch.
bool has_a_row(const State& state) {
  RowPlan plan(state.set, state.options, 0, 1);
  RowBatch batch;
  return plan.next(batch) || plan.facts().dropped_rows > 0;
}

}  // namespace

const EpochCount& State::count(std::int64_t replicas, std::int64_t epoch) const {
  constexpr std::size_t kFew = 10'000;  // documents: counting them takes a millisecond
  constexpr std::size_t kMaxEpochs = 4;
  const std::pair key{replicas, epoch};
  if (const auto known = counts.find(key); known != counts.end()) return known->second;
  data::OpenOptions part;
  part.epoch = epoch;
  part.replicas = replicas;
  const std::string order = base::str(order_of(*this, part), " pad=", options.pad ? 1 : 0);
  if (counts.size() >= kMaxEpochs) counts.clear();
  EpochCount found = kept_count(set, options, epoch, replicas, order,
                                set.documents() <= kFew ? "" : data::usual_survey_folder());
  if (epoch == 0) size = static_cast<std::int64_t>(found.facts.rows + found.facts.dropped_rows);
  return counts[key] = std::move(found);
}

std::string text_of(const TokenBatchFacts& facts) {
  const auto share = [&](std::uint64_t part, std::uint64_t all) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%",
                  all > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(all) : 0.0);
    return std::string(text);
  };
  std::string text = base::str(base::counted(static_cast<std::int64_t>(facts.documents), "document"),
                               " with ", base::counted(static_cast<std::int64_t>(facts.tokens), "token"),
                               " in ", base::counted(static_cast<std::int64_t>(facts.rows), "row"), ", ",
                               share(facts.places - facts.filled, facts.places), " of them padding");
  const auto add = [&](std::uint64_t count, const std::string& what) {
    if (count > 0) text += "; " + what;
  };
  const auto documents = [](std::uint64_t count) {
    return base::counted(static_cast<std::int64_t>(count), "document");
  };
  const auto tokens = [](std::uint64_t count) {
    return base::counted(static_cast<std::int64_t>(count), "token");
  };
  add(facts.short_documents, documents(facts.short_documents) + " too short to predict anything in");
  add(facts.split_documents, documents(facts.split_documents) + " split");
  add(facts.cut_documents,
      base::str(documents(facts.cut_documents), " cut by ", tokens(facts.cut_tokens), " in all"));
  add(facts.dropped_rows,
      base::str(base::counted(static_cast<std::int64_t>(facts.dropped_rows), "row"), " with ",
                tokens(facts.dropped_tokens), " left out, as they fill no batch"));
  return text;
}

TokenBatches::TokenBatches(TokenSet set, TokenBatchOptions options) {
  std::sort(options.shapes.begin(), options.shapes.end(),
            [](const auto& a, const auto& b) { return a.length < b.length; });
  check(options);
  auto state = std::make_shared<State>();
  state->set = std::move(set);
  state->options = std::move(options);
  state->names = hash_of_names(state->set);
  state->content = hash_of_ids(state->set);
  if (state->options.kind == RowKind::kRunning && running_rows(state->set, state->options) == 0)
    refuse(base::str("the set has ", state->set.tokens(), " tokens, less than one row of ",
                     state->options.shapes.front().length));
  state_ = std::move(state);
  if (!has_a_row(*state_)) refuse("the set has no document that fills a row: is it empty?");
}

std::unique_ptr<data::Stream> TokenBatches::open(const data::OpenOptions& options) const {
  return std::make_unique<TokenStream>(state_, options, order_of(*state_, options));
}

std::unique_ptr<data::Stream> TokenBatches::resume(const std::string& state,
                                                   const data::OpenOptions& options) const {
  const data::OpenOptions there = data::position_in(state, options);
  data::expect_same(state, this->state(there), {data::PinnedShards{}}, there.part == 0);
  return open(there);
}

std::string TokenBatches::state(const data::OpenOptions& options) const {
  return base::str(order_of(*state_, options), " batches=", options.skip_batches);
}

TokenBatchFacts TokenBatches::facts(std::int64_t replicas, std::int64_t epoch) const {
  if (state_->options.kind != RowKind::kRunning) {
    const std::lock_guard lock(state_->mutex);
    return state_->count(replicas, epoch).facts;
  }
  RowPlan plan(state_->set, state_->options, epoch, replicas);
  RowBatch batch;
  while (plan.next(batch)) {
  }
  return plan.facts();
}

std::vector<std::uint64_t> TokenBatches::tokens_of_batches(std::int64_t replicas, std::int64_t epoch) const {
  std::vector<std::uint64_t> tokens;
  if (state_->options.kind == RowKind::kRunning) {
    const data::LengthShape& shape = state_->options.shapes.front();
    const std::uint64_t length = static_cast<std::uint64_t>(shape.length) - frame_of(state_->options);
    const auto together = static_cast<std::uint64_t>(shape.rows * replicas);
    std::uint64_t rows = running_rows(state_->set, state_->options);
    for (std::int64_t left = batches(replicas, epoch); left > 0; --left, rows -= std::min(rows, together))
      tokens.push_back(std::min(rows, together) * length);
    return tokens;
  }
  const std::lock_guard lock(state_->mutex);
  return state_->count(replicas, epoch).tokens;
}

std::int64_t TokenBatches::size() const {
  if (state_->options.kind == RowKind::kRunning)
    return static_cast<std::int64_t>(running_rows(state_->set, state_->options));
  const std::lock_guard lock(state_->mutex);
  // The rows do not depend on the number of replicas, so that any count of the epoch says it.
  if (!state_->size) state_->count(1, 0);
  return *state_->size;
}

std::int64_t TokenBatches::batches(std::int64_t replicas, std::int64_t epoch) const {
  if (state_->options.kind == RowKind::kRunning) {
    const std::int64_t rows = state_->options.shapes.front().rows * replicas;
    const auto all = static_cast<std::int64_t>(running_rows(state_->set, state_->options));
    return (state_->options.pad ? all + rows - 1 : all) / rows;
  }
  const std::lock_guard lock(state_->mutex);
  return std::ssize(state_->count(replicas, epoch).tokens);
}

std::int64_t TokenBatches::batch_size() const { return state_->options.shapes.back().rows; }
data::Remainder TokenBatches::remainder() const {
  return state_->options.pad ? data::Remainder::kPad : data::Remainder::kDrop;
}
const std::vector<float>& TokenBatches::mean() const {
  static const std::vector<float> none;
  return none;
}
const std::vector<float>& TokenBatches::deviation() const { return mean(); }
std::int64_t TokenBatches::predictions(std::int64_t length) const {
  return state_->options.masking ? predictions_of(*state_->options.masking, length) : 0;
}

}  // namespace sluice::text
