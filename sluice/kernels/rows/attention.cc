#include "sluice/kernels/rows/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/gemm/gemm_panels.h"
#include "sluice/kernels/gemm/micro_kernel.h"
#include "sluice/kernels/rows/exponential.h"
#include "sluice/kernels/threads.h"
#include "sluice/stablehlo/attention_dropout.h"

namespace sluice::kernels {
namespace {

// The keys of a block: with the widest panel of queries they take 32 KiB.
constexpr size_t kKeysOfBlock = 128;

// The rows that are prefetched: rows of one head are too far apart for the hardware's prefetcher.
constexpr size_t kPrefetchRows = 16;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// The initial largest score: a finite number, so that the distance from it to -inf is a number, too.
constexpr float kLowest = std::numeric_limits<float>::lowest();

template <typename L>
SLUICE_INLINE void scale_floats_by(float* x, size_t floats, float factor) {
  L value;
  for (size_t i = 0; i < floats; i += kFloatsOf<L>) {
    load(x + i, value);
    store(value * factor, x + i);
  }
}

// Computes x [rows, a panel] += addends [rows, a panel].
template <typename L>
SLUICE_INLINE void add_floats_by(const float* addends, size_t floats, float* x) {
  L value, addend;
  for (size_t i = 0; i < floats; i += kFloatsOf<L>) {
    load(x + i, value);
    load(addends + i, addend);
    store(value + addend, x + i);
  }
}

// Adds to each row of x [rows, a panel] its number from `addends`.
template <typename L>
SLUICE_INLINE void add_to_rows_by(const float* addends, size_t rows, float* x) {
  constexpr size_t kVectors = kTileVectors<L>, kWidth = kTileColumns<L>;
  L value;
  for (size_t row = 0; row < rows; ++row)
#pragma GCC unroll 4
    for (size_t j = 0; j < kVectors; ++j) {
      load(x + row * kWidth + j * kFloatsOf<L>, value);
      store(value + addends[row], x + row * kWidth + j * kFloatsOf<L>);
    }
}

// Replaces scores [keys, a panel] by the exponentials of their distances from the largest score so far.
// Updates `max` and `sum`, and rescales earlier sums, also in `output` [size, a panel], to the new maxima.
template <typename L>
SLUICE_INLINE void take_exponentials_by(float* scores, size_t keys, float* max, float* sum, float* output,
                                        size_t size) {
  constexpr size_t kVectors = kTileVectors<L>, kWidth = kTileColumns<L>;
  L new_max[kVectors], sums[kVectors], factors[kVectors], value;
#pragma GCC unroll 4
  for (size_t j = 0; j < kVectors; ++j) load(max + j * kFloatsOf<L>, new_max[j]);
  for (size_t row = 0; row < keys; ++row)
#pragma GCC unroll 4
    for (size_t j = 0; j < kVectors; ++j) {
      load(scores + row * kWidth + j * kFloatsOf<L>, value);
      new_max[j] = value > new_max[j] ? value : new_max[j];
    }
#pragma GCC unroll 4
  for (size_t j = 0; j < kVectors; ++j) {
    load(max + j * kFloatsOf<L>, factors[j]);
    factors[j] -= new_max[j];
    exponential(factors[j]);
    store(new_max[j], max + j * kFloatsOf<L>);
    load(sum + j * kFloatsOf<L>, sums[j]);
    sums[j] *= factors[j];
  }
  for (size_t row = 0; row < keys; ++row)
#pragma GCC unroll 4
    for (size_t j = 0; j < kVectors; ++j) {
      float* const score = scores + row * kWidth + j * kFloatsOf<L>;
      load(score, value);
      value -= new_max[j];
      exponential(value);
      sums[j] += value;
      store(value, score);
    }
  for (size_t row = 0; row < size; ++row)
#pragma GCC unroll 4
    for (size_t j = 0; j < kVectors; ++j) {
      float* const some = output + row * kWidth + j * kFloatsOf<L>;
      load(some, value);
      store(value * factors[j], some);
    }
#pragma GCC unroll 4
  for (size_t j = 0; j < kVectors; ++j) store(sums[j], sum + j * kFloatsOf<L>);
}

// Divides each column of x [rows, a panel] by its number, or sets it to 0 if that number is 0.
template <typename L>
SLUICE_INLINE void divide_columns_by(float* x, size_t rows, const float* divisors) {
  constexpr size_t kVectors = kTileVectors<L>, kWidth = kTileColumns<L>;
  L factors[kVectors], value;
#pragma GCC unroll 4
  for (size_t j = 0; j < kVectors; ++j) {
    load(divisors + j * kFloatsOf<L>, value);
    factors[j] = value == 0.f ? value : 1.f / value;
  }
  for (size_t row = 0; row < rows; ++row)
#pragma GCC unroll 4
    for (size_t j = 0; j < kVectors; ++j) {
      load(x + row * kWidth + j * kFloatsOf<L>, value);
      store(value * factors[j], x + row * kWidth + j * kFloatsOf<L>);
    }
}

// Sums a b over the rows, both [rows, a panel].
template <typename L>
SLUICE_INLINE void multiply_columns_by(const float* a, const float* b, size_t rows, float* to) {
  constexpr size_t kVectors = kTileVectors<L>, kWidth = kTileColumns<L>;
  L sums[kVectors] = {}, of_a, of_b;
  for (size_t row = 0; row < rows; ++row)
#pragma GCC unroll 4
    for (size_t j = 0; j < kVectors; ++j) {
      load(a + row * kWidth + j * kFloatsOf<L>, of_a);
      load(b + row * kWidth + j * kFloatsOf<L>, of_b);
      sums[j] += of_a * of_b;
    }
#pragma GCC unroll 4
  for (size_t j = 0; j < kVectors; ++j) store(sums[j], to + j * kFloatsOf<L>);
}

// Replaces scores [keys, a panel] by probabilities, and the probabilities' gradients by the scores'
// gradients.
template <typename L>
SLUICE_INLINE void take_gradients_by(float* scores, float* gradients, size_t keys, const float* logsumexp,
                                     const float* delta) {
  constexpr size_t kVectors = kTileVectors<L>, kWidth = kTileColumns<L>;
  L logarithms[kVectors], deltas[kVectors], value, gradient;
#pragma GCC unroll 4
  for (size_t j = 0; j < kVectors; ++j) {
    load(logsumexp + j * kFloatsOf<L>, logarithms[j]);
    load(delta + j * kFloatsOf<L>, deltas[j]);
  }
  for (size_t row = 0; row < keys; ++row)
#pragma GCC unroll 4
    for (size_t j = 0; j < kVectors; ++j) {
      const size_t at = row * kWidth + j * kFloatsOf<L>;
      load(scores + at, value);
      load(gradients + at, gradient);
      value -= logarithms[j];
      exponential(value);
      store(value, scores + at);
      store(value * (gradient - deltas[j]), gradients + at);
    }
}

// The data that decides which keys each query of a panel keeps.
struct Decisions {
  alignas(64) uint32_t first_seeds[kMaxTileColumns] = {}, second_seeds[kMaxTileColumns] = {};
  uint32_t kept_below = 0;
  float factor = 0;  // of the kept values
};

// Multiplies the kept values of x [keys, a panel] by the factor and sets the others to 0; the first key is
// `first_key`.
template <typename L>
SLUICE_INLINE void drop_by(const Decisions& decisions, size_t first_key, size_t keys, float* x) {
  typedef uint32_t Words __attribute__((vector_size(sizeof(L))));
  typedef int32_t Integers __attribute__((vector_size(sizeof(L))));
  constexpr size_t kVectors = kTileVectors<L>, kWidth = kTileColumns<L>;
  Words first_seeds[kVectors], second_seeds[kVectors];
  L value;
#pragma GCC unroll 4
  for (size_t j = 0; j < kVectors; ++j) {
    load(reinterpret_cast<const float*>(decisions.first_seeds) + j * kFloatsOf<L>, value);
    first_seeds[j] = reinterpret_cast<Words>(value);
    load(reinterpret_cast<const float*>(decisions.second_seeds) + j * kFloatsOf<L>, value);
    second_seeds[j] = reinterpret_cast<Words>(value);
  }
  const auto kept_below = static_cast<int32_t>(decisions.kept_below);
  auto of_key = static_cast<uint32_t>(first_key) * stablehlo::kKeyFactor;
  for (size_t row = 0; row < keys; ++row, of_key += stablehlo::kKeyFactor)
#pragma GCC unroll 4
    for (size_t j = 0; j < kVectors; ++j) {
      Words bits = first_seeds[j] + of_key;
      stablehlo::take_bits(bits, second_seeds[j]);
      const Integers kept = reinterpret_cast<Integers>(bits >> stablehlo::kLowBits) < kept_below;
      load(x + row * kWidth + j * kFloatsOf<L>, value);
      value *= decisions.factor;
      store(reinterpret_cast<L>(reinterpret_cast<Integers>(value) & kept),
            x + row * kWidth + j * kFloatsOf<L>);
    }
}

SLUICE_BY_LANES(scale_floats, (float* x, size_t floats, float factor), (x, floats, factor))
SLUICE_BY_LANES(add_floats, (const float* addends, size_t floats, float* x), (addends, floats, x))
SLUICE_BY_LANES(add_to_rows, (const float* addends, size_t rows, float* x), (addends, rows, x))
SLUICE_BY_LANES(take_exponentials,
                (float* scores, size_t keys, float* max, float* sum, float* output, size_t size),
                (scores, keys, max, sum, output, size))
SLUICE_BY_LANES(divide_columns, (float* x, size_t rows, const float* divisors), (x, rows, divisors))
SLUICE_BY_LANES(multiply_columns, (const float* a, const float* b, size_t rows, float* to), (a, b, rows, to))
SLUICE_BY_LANES(take_gradients,
                (float* scores, float* gradients, size_t keys, const float* logsumexp, const float* delta),
                (scores, gradients, keys, logsumexp, delta))
SLUICE_BY_LANES(drop, (const Decisions& decisions, size_t first_key, size_t keys, float* x),
                (decisions, first_key, keys, x))

// One head's matrix [positions, size] in a tensor of several heads; its rows are `step` floats apart.
struct Head {
  size_t first, step;
};
Head head_of(const Attention& of, size_t positions, size_t heads, size_t number, size_t parts = 1) {
  const size_t batch = number / heads, head = number % heads;
  return {(batch * positions * parts * heads + head) * of.size, parts * heads * of.size};
}
size_t parts_of(const Attention& of) { return of.packed_qkv ? 3 : 1; }
Head output_of(const Attention& of, size_t head) { return head_of(of, of.queries, of.heads, head); }
Head queries_of(const Attention& of, size_t head) {
  return head_of(of, of.queries, of.heads, head, parts_of(of));
}
// Returns the matrix of keys, of values or of their gradients for a head of keys.
Head keys_of(const Attention& of, size_t head) {
  return head_of(of, of.keys, of.heads / of.sharing(), head, parts_of(of));
}

// A panel of queries.
struct Panel {
  size_t first, count;  // queries
  size_t keys;          // the number of keys that at least one of the queries sees
};
size_t panels_of_queries(const Attention& of) { return panels_of(of.queries); }
Panel panel_of(const Attention& of, size_t number) {
  const size_t first = number * tile_columns(), count = std::min(tile_columns(), of.queries - first);
  return {first, count, of.causal ? std::min(of.keys, first + count) : of.keys};
}

// The part of a mask for a block of keys and a panel of queries.
class MaskBlock {
 public:
  MaskBlock(const Attention& of, size_t head, float* room) : of_(of.mask), room_(room) {
    if (of_.data != nullptr) of_.data += head / of.heads * of_.batch_step + head % of.heads * of_.head_step;
  }
  static size_t floats(const Attention& of) {
    return of.mask.query_step == 0 ? 0 : kKeysOfBlock * tile_columns();
  }

  // Reads the block's mask. Returns false if no query of the panel sees a key of the block.
  bool read(const Panel& panel, size_t first_key, size_t keys) {
    if (of_.data == nullptr) return true;
    const float* const from = of_.data + panel.first * of_.query_step + first_key;
    const auto is_seen = [](float value) { return value != -kInfinity; };
    bool seen = false;
    for (size_t i = 0; i < (of_.query_step == 0 ? 1 : panel.count) && !seen; ++i)
      seen = std::any_of(from + i * of_.query_step, from + i * of_.query_step + keys, is_seen);
    if (seen && of_.query_step != 0) pack_panel({from, of_.query_step, true}, keys, panel.count, 0, room_);
    of_keys_ = from;
    return seen;
  }
  // Adds the mask that was read.
  void add(size_t keys, float* scores) const {
    if (of_.data == nullptr) return;
    if (of_.query_step == 0) {
      add_to_rows(of_keys_, keys, scores);
    } else {
      add_floats(room_, keys * tile_columns(), scores);
    }
  }

 private:
  Mask of_;
  float* room_;                     // the block as a panel, if queries have different masks
  const float* of_keys_ = nullptr;  // one row, if all queries have the same mask
};

// Returns the decisions for a panel of one head. Without dropout nothing reads them.
Decisions decisions_of(const Attention& of, size_t head, const Panel& panel) {
  Decisions made;
  const Dropout& dropout = of.dropout;
  if (dropout.seeds == nullptr) return made;
  const size_t rows = of.batch * of.heads * of.queries, first = head * of.queries + panel.first;
  const size_t bytes = panel.count * sizeof(uint32_t);
  std::memcpy(made.first_seeds, dropout.seeds + first, bytes);
  std::memcpy(made.second_seeds, dropout.seeds + rows + first, bytes);
  made.kept_below = stablehlo::kept_below(dropout.p);
  made.factor = dropout.p < 1 ? 1 / (1 - dropout.p) : 0;
  return made;
}

// Hides from each query the keys at later positions.
void hide(const Panel& panel, size_t first_key, size_t keys, float* scores) {
  const size_t width = tile_columns();
  for (size_t key = std::max(first_key, panel.first + 1); key < first_key + keys; ++key)
    std::fill_n(scores + (key - first_key) * width, std::min(width, key - panel.first), -kInfinity);
}

// Packs one head's keys or values for many panels of queries.
void pack_head(const Head& head, const float* tensor, size_t positions, size_t size, float* to) {
  for (size_t row = 0; row < positions; ++row) {
    const float* const from = tensor + head.first + row * head.step;
    prefetch<false>(from + kPrefetchRows * head.step, size);
    std::copy_n(from, size, to + row * size);
  }
}
// Packs them as [tiles, positions, kTileRows]: the transpose is the left side of a product.
void pack_transposed(const Head& head, const float* tensor, size_t positions, size_t size, float* to) {
  pack_rows({tensor + head.first, head.step, true}, size, positions, to);
}
size_t transposed_floats(size_t positions, size_t size) {
  return (size + kTileRows - 1) / kTileRows * kTileRows * positions;
}

// Computes [keys, a panel]: rows from pack_head times a matrix that is packed as [size, a panel]. With few
// queries half of the panel is not written, here and below; nothing reads results from that half.
void multiply_keys(const float* rows, size_t keys, const float* packed, size_t size, size_t queries,
                   float* to) {
  multiply_tiles({rows, kTileRows * size, size, 1, packed, size, to, tile_columns(), false, queries}, keys);
}
// Adds to [size, a panel]: the matrix that pack_transposed made of `positions`, from some key on, times a
// block's scores.
void multiply_sizes(const float* transposed, size_t positions, size_t keys, const float* scores, size_t size,
                    size_t queries, float* to) {
  multiply_tiles(
      {transposed, kTileRows * positions, 1, kTileRows, scores, keys, to, tile_columns(), true, queries},
      size);
}

// Computes some of one head's panels of queries.
class HeadAttention {
 public:
  HeadAttention(const Attention& of, const float* k, const float* v, size_t head)
      : of_(of),
        head_(head),
        scratch_({{keys_, of.keys * of.size},
                  {values_, transposed_floats(of.keys, of.size)},
                  {queries_, of.size * width_},
                  {sums_, of.size * width_},
                  {scores_, kKeysOfBlock * width_},
                  {room_of_mask_, MaskBlock::floats(of)}}),
        mask_(of, head, room_of_mask_) {
    const Head keys = keys_of(of, head / of.sharing());
    pack_head(keys, k, of.keys, of.size, keys_);
    pack_transposed(keys, v, of.keys, of.size, values_);
  }

  void run_panel(const Panel& panel, const float* q, float* output, float* logsumexp) {
    const Head q_head = queries_of(of_, head_), output_head = output_of(of_, head_);
    float* const to = output + output_head.first + panel.first * output_head.step;
    const size_t floats = of_.size * width_;
    for (size_t i = 0; i < panel.count; ++i) prefetch<true>(to + i * output_head.step, of_.size);
    alignas(64) float max[kMaxTileColumns], sum[kMaxTileColumns] = {};
    std::fill_n(max, width_, kLowest);
    std::fill_n(sums_, floats, 0.f);
    pack_panel({q + q_head.first + panel.first * q_head.step, q_head.step, true}, of_.size, panel.count, 0,
               queries_);
    scale_floats(queries_, floats, of_.scale);
    const Decisions decisions = decisions_of(of_, head_, panel);
    for (size_t key = 0; key < panel.keys; key += kKeysOfBlock) {
      const size_t keys = std::min(kKeysOfBlock, panel.keys - key);
      if (!mask_.read(panel, key, keys)) continue;
      multiply_keys(keys_ + key * of_.size, keys, queries_, of_.size, panel.count, scores_);
      mask_.add(keys, scores_);
      if (of_.causal) hide(panel, key, keys, scores_);
      take_exponentials(scores_, keys, max, sum, sums_, of_.size);
      if (of_.dropout.seeds != nullptr) drop(decisions, key, keys, scores_);
      multiply_sizes(values_ + key * kTileRows, of_.keys, keys, scores_, of_.size, panel.count, sums_);
    }
    divide_columns(sums_, of_.size, sum);
    transpose(sums_, tile_columns(), of_.size, panel.count, to, output_head.step);
    for (size_t i = 0; i < panel.count; ++i)
      logsumexp[head_ * of_.queries + panel.first + i] = sum[i] == 0 ? kInfinity : max[i] + std::log(sum[i]);
  }

 private:
  const Attention& of_;
  const size_t head_, width_ = tile_columns();
  float *keys_, *values_, *queries_, *sums_, *scores_, *room_of_mask_;
  const ScratchArrays scratch_;
  MaskBlock mask_;
};

// Packs the rows of some queries as b of a product: panels of `size`. The columns after their end in the last
// panel have no effect.
void pack_query_rows(const float* rows, size_t step, size_t queries, size_t size, float* to) {
  const size_t width = tile_columns();
  for (size_t column = 0; column < size; column += width)
    for (size_t row = 0; row < queries; ++row, to += width)
      std::copy_n(rows + row * step + column, std::min(width, size - column), to);
}

// Computes the gradients of one head of keys, and of the heads of queries that share it. The sums of keys and
// values are in panels of `size`.
class HeadGradient {
 public:
  HeadGradient(const Attention& of, const AttentionGradient& tensors, size_t head)
      : of_(of),
        t_(tensors),
        head_of_keys_(head),
        k_head_(keys_of(of, head)),
        scratch_({{queries_, packed()},
                  {grad_, packed()},
                  {sums_of_queries_, packed()},
                  {query_rows_, rows()},
                  {grad_rows_, rows()},
                  {scores_, kKeysOfBlock * width_},
                  {gradients_, kKeysOfBlock * width_},
                  {sums_of_keys_, sums()},
                  {sums_of_values_, sums()},
                  {keys_, of.keys * of.size},
                  {values_, of.keys * of.size},
                  {transposed_keys_, transposed_floats(of.keys, of.size)},
                  {room_of_mask_, MaskBlock::floats(of)}}) {
    pack_head(k_head_, tensors.k, of.keys, of.size, keys_);
    pack_head(k_head_, tensors.v, of.keys, of.size, values_);
    pack_transposed(k_head_, tensors.k, of.keys, of.size, transposed_keys_);
  }

  void run() {
    std::fill_n(sums_of_keys_, sums(), 0.f);
    std::fill_n(sums_of_values_, sums(), 0.f);
    for (size_t i = 0; i < of_.sharing(); ++i) {
      OfQueries one{of_, head_of_keys_ * of_.sharing() + i, room_of_mask_};
      for (size_t panel = 0; panel < panels_of_queries(of_); ++panel) run_panel(one, panel_of(of_, panel));
    }
    scale_floats(sums_of_keys_, sums(), of_.scale);
    write_sums(sums_of_keys_, t_.grad_k);
    write_sums(sums_of_values_, t_.grad_v);
  }

 private:
  size_t packed() const { return of_.size * width_; }                           // [size, queries]
  size_t rows() const { return panels_of(of_.size) * width_ * width_; }         // [panels, queries, size]
  size_t sums() const { return panels_of(of_.size) * panel_floats(of_.keys); }  // [panels, keys, size]

  // A head of queries.
  struct OfQueries {
    OfQueries(const Attention& of, size_t number, float* room_of_mask)
        : number(number),
          queries(queries_of(of, number)),
          output(output_of(of, number)),
          mask(of, number, room_of_mask) {}
    size_t number;
    Head queries, output;
    MaskBlock mask;
  };

  // The numbers of each query in a panel.
  struct PanelNumbers {
    alignas(64) float delta[kMaxTileColumns] = {}, logsumexp[kMaxTileColumns] = {};
    Decisions decisions;
  };

  void run_panel(OfQueries& head, const Panel& panel) {
    const size_t q_offset = head.queries.first + panel.first * head.queries.step;
    const size_t output_offset = head.output.first + panel.first * head.output.step;
    const auto pack = [&](const float* from, size_t step, float* to) {
      pack_panel({from, step, true}, of_.size, panel.count, 0, to);
    };
    PanelNumbers numbers{.decisions = decisions_of(of_, head.number, panel)};
    std::copy_n(t_.logsumexp + head.number * of_.queries + panel.first, panel.count, numbers.logsumexp);
    pack(t_.grad_output + output_offset, head.output.step, grad_);
    pack(t_.output + output_offset, head.output.step, sums_of_queries_);
    multiply_columns(grad_, sums_of_queries_, of_.size, numbers.delta);
    pack(t_.q + q_offset, head.queries.step, queries_);
    scale_floats(queries_, packed(), of_.scale);
    pack_query_rows(t_.q + q_offset, head.queries.step, panel.count, of_.size, query_rows_);
    pack_query_rows(t_.grad_output + output_offset, head.output.step, panel.count, of_.size, grad_rows_);
    std::fill_n(sums_of_queries_, packed(), 0.f);
    for (size_t key = 0; key < panel.keys; key += kKeysOfBlock)
      run_block(head, panel, key, std::min(kKeysOfBlock, panel.keys - key), numbers);
    scale_floats(sums_of_queries_, packed(), of_.scale);
    transpose(sums_of_queries_, tile_columns(), of_.size, panel.count, t_.grad_q + q_offset,
              head.queries.step);
  }

  void run_block(OfQueries& head, const Panel& panel, size_t key, size_t keys, const PanelNumbers& numbers) {
    if (!head.mask.read(panel, key, keys)) return;
    const size_t at = key * of_.size;
    multiply_keys(keys_ + at, keys, queries_, of_.size, panel.count, scores_);
    head.mask.add(keys, scores_);
    if (of_.causal) hide(panel, key, keys, scores_);
    multiply_keys(values_ + at, keys, grad_, of_.size, panel.count, gradients_);
    const bool drops = of_.dropout.seeds != nullptr;
    if (drops) drop(numbers.decisions, key, keys, gradients_);
    take_gradients(scores_, gradients_, keys, numbers.logsumexp, numbers.delta);
    if (drops) drop(numbers.decisions, key, keys, scores_);
    multiply_sizes(transposed_keys_ + key * kTileRows, of_.keys, keys, gradients_, of_.size, panel.count,
                   sums_of_queries_);
    add_rows(gradients_, panel, key, keys, query_rows_, sums_of_keys_);
    add_rows(scores_, panel, key, keys, grad_rows_, sums_of_values_);
  }

  // Computes sums [keys, size] += scores [keys, queries] rows [queries, size].
  void add_rows(const float* scores, const Panel& panel, size_t key, size_t keys, const float* rows,
                float* sums) const {
    for (size_t i = 0; i < panels_of(of_.size); ++i) {
      float* const to = sums + i * panel_floats(of_.keys) + key * width_;
      multiply_tiles({scores, kTileRows * width_, width_, 1, rows + i * panel.count * width_, panel.count, to,
                      width_, true, of_.size - i * width_},
                     keys);
    }
  }

  void write_sums(const float* sums, float* to) const {
    for (size_t i = 0; i < panels_of(of_.size); ++i)
      for (size_t key = 0; key < of_.keys; ++key)
        std::copy_n(sums + i * panel_floats(of_.keys) + key * width_, std::min(width_, of_.size - i * width_),
                    to + k_head_.first + key * k_head_.step + i * width_);
  }

  const Attention& of_;
  const AttentionGradient& t_;
  const size_t head_of_keys_, width_ = tile_columns();
  const Head k_head_;
  float *queries_, *grad_, *sums_of_queries_, *query_rows_, *grad_rows_, *scores_, *gradients_,
      *sums_of_keys_, *sums_of_values_, *keys_, *values_, *transposed_keys_, *room_of_mask_;
  const ScratchArrays scratch_;
};

}  // namespace

void attend(const Attention& attention, const float* q, const float* k, const float* v, float* output,
            float* logsumexp) {
  // If there are few heads, several threads share each of them, and each thread packs keys and values again.
  // A thread's panels are `shares` apart, because with `causal` the last panels see the most keys.
  const size_t heads = attention.batch * attention.heads, panels = panels_of_queries(attention);
  const auto parts = static_cast<size_t>(kMaxPartsPerThread * threads_of_a_call());
  const size_t shares = std::min(panels, (parts + heads - 1) / heads);
  parallel_for(heads * shares, [&](size_t i) {
    HeadAttention head(attention, k, v, i / shares);
    for (size_t panel = i % shares; panel < panels; panel += shares)
      head.run_panel(panel_of(attention, panel), q, output, logsumexp);
  });
}

void attend_gradient(const Attention& attention, const AttentionGradient& tensors) {
  parallel_for(attention.batch * attention.heads / attention.sharing(),
               [&](size_t head) { HeadGradient(attention, tensors, head).run(); });
}

bool has_attention(const stablehlo::AttentionCall& call) {
  constexpr int64_t kMaxSize = 256;
  // With fewer queries most of a panel is empty.
  const auto min_queries = static_cast<int64_t>(tile_columns() / 4);
  return has_lanes8() && call.size <= kMaxSize && call.queries >= min_queries && call.keys > 0;
}

namespace {

// The operands of a call: q is the operand `first`, followed by k and v if they are not packed in one tensor.
// A mask, and the seeds and the probability of dropout, come last, if the call has them.
struct Operands {
  size_t first;
  bool packed_qkv, masked;
  size_t before_dropout;  // the number of operands without seeds and probability
};

// Reads a call; `like_output` is a tensor [batch, queries, heads, size].
base::Result<Attention> attention_of(const Call& call, const Tensor& like_output, const Operands& operands) {
  if (!has_lanes8()) return tl::unexpected<Error>(no_kernel("attention").error());
  SLUICE_TRY(const bool causal, call.flag("causal"));
  SLUICE_TRY(const double scale, call.real("scale"));
  Attention made{.batch = like_output.dim(0),
                 .heads = like_output.dim(2),
                 .heads_of_keys = like_output.dim(2),
                 .queries = like_output.dim(1),
                 .keys = like_output.dim(1),
                 .size = like_output.dim(3),
                 .causal = causal,
                 .scale = static_cast<float>(scale),
                 .packed_qkv = operands.packed_qkv};
  if (!operands.packed_qkv) {
    SLUICE_TRY(const Tensor keys, call.filled_operand(operands.first + 1, "k", 4, 4));
    made.keys = keys.dim(1);
    made.heads_of_keys = keys.dim(2);
    if (made.heads % made.heads_of_keys != 0)
      return call.refuse("k has ", made.heads_of_keys, " heads, expected ", made.heads,
                         " or a divisor of it");
  }
  if (call.num_operands() > operands.before_dropout) {
    const int64_t dims[] = {2, like_output.dims[0], like_output.dims[2], like_output.dims[1]};
    SLUICE_TRY(const Tensor seeds, call.operand(operands.before_dropout, "seeds", dims));
    SLUICE_TRY(const Tensor p, call.operand(operands.before_dropout + 1, "p", {}));
    if (!(*p.data >= 0 && *p.data <= 1)) return call.refuse("p is ", *p.data, ", expected 0 to 1");
    made.dropout = {reinterpret_cast<const uint32_t*>(seeds.data), *p.data};
  }
  if (!operands.masked) return made;
  SLUICE_TRY(const Tensor mask, call.filled_operand(operands.before_dropout - 1, "mask", 4, 4));
  const size_t extents[] = {made.batch, made.heads, made.queries};
  size_t steps[3], step = made.keys;
  for (size_t i = 3; i-- > 0; step *= mask.dim(i)) {
    if (mask.dim(i) != 1 && mask.dim(i) != extents[i])
      return call.refuse("dimension ", i, " of the mask is ", mask.dim(i), ", expected 1 or ", extents[i]);
    steps[i] = mask.dim(i) == 1 ? 0 : step;
  }
  if (mask.dim(3) != made.keys)
    return call.refuse("the mask has ", mask.dim(3), " keys, expected ", made.keys);
  made.mask = {mask.data, steps[0], steps[1], steps[2]};
  return made;
}

base::Result<size_t> operands_of_dropout(const Call& call) {
  SLUICE_TRY(const bool drops, call.flag("dropout"));
  return size_t{drops ? 2u : 0u};
}

stablehlo::Dims dims_of(std::initializer_list<size_t> extents) {
  return stablehlo::Dims(extents.begin(), extents.end());
}
stablehlo::Dims dims_of_output(const Attention& a) { return dims_of({a.batch, a.queries, a.heads, a.size}); }
stablehlo::Dims dims_of_logsumexp(const Attention& a) { return dims_of({a.batch, a.heads, a.queries}); }

// Queries, keys and values, or their gradients.
struct Parts {
  float *q, *k, *v;
};
// Reads the parts: read(i, dims) returns the i-th tensor, or the packed one.
template <typename Read>
base::Result<Parts> parts_from(const Attention& a, const Read& read) {
  const size_t part = a.heads * a.size;
  if (a.packed_qkv) {
    SLUICE_TRY(const Tensor all, read(0, dims_of({a.batch, a.queries, 3 * part})));
    return Parts{all.data, all.data + part, all.data + 2 * part};
  }
  const stablehlo::Dims dims_of_keys = dims_of({a.batch, a.keys, a.heads / a.sharing(), a.size});
  SLUICE_TRY(const Tensor q, read(0, dims_of_output(a)));
  SLUICE_TRY(const Tensor k, read(1, dims_of_keys));
  SLUICE_TRY(const Tensor v, read(2, dims_of_keys));
  return Parts{q.data, k.data, v.data};
}

}  // namespace

base::Status call_attention(const Call& call) {
  SLUICE_TRY(const size_t of_dropout, operands_of_dropout(call));
  SLUICE_OK(call.takes({{3 + of_dropout, 2}, {1 + of_dropout, 2}, {4 + of_dropout, 2}, {2 + of_dropout, 2}}));
  SLUICE_TRY(const Tensor output, call.filled_result(0, "output", 4, 4));
  const size_t operands = call.num_operands() - of_dropout;
  SLUICE_TRY(const Attention attention,
             attention_of(call, output, {0, operands < 3, operands % 2 == 0, operands}));
  SLUICE_TRY(const Tensor logsumexp, call.result(1, "logsumexp", dims_of_logsumexp(attention)));
  SLUICE_TRY(const Parts in, parts_from(attention, [&](size_t i, const stablehlo::Dims& dims) {
               return call.operand(i, "q, k, v", dims);
             }));
  attend(attention, in.q, in.k, in.v, output.data, logsumexp.data);
  return {};
}

base::Status call_attention_gradient(const Call& call) {
  SLUICE_TRY(const size_t of_dropout, operands_of_dropout(call));
  SLUICE_OK(call.takes({{6 + of_dropout, 3}, {4 + of_dropout, 1}, {7 + of_dropout, 3}, {5 + of_dropout, 1}}));
  SLUICE_TRY(const Tensor grad, call.filled_operand(0, "grad_output", 4, 4));
  const size_t operands = call.num_operands() - of_dropout;
  const bool masked = operands % 2 == 1;
  SLUICE_TRY(const Attention attention,
             attention_of(call, grad, {1, call.num_results() == 1, masked, operands}));
  SLUICE_TRY(const Parts in, parts_from(attention, [&](size_t i, const stablehlo::Dims& dims) {
               return call.operand(1 + i, "q, k, v", dims);
             }));
  SLUICE_TRY(const Parts made, parts_from(attention, [&](size_t i, const stablehlo::Dims& dims) {
               return call.result(i, "grad_q, grad_k, grad_v", dims);
             }));
  const size_t behind = operands - (masked ? 3 : 2);
  SLUICE_TRY(const Tensor output, call.operand(behind, "output", grad.dims));
  SLUICE_TRY(const Tensor logsumexp, call.operand(behind + 1, "logsumexp", dims_of_logsumexp(attention)));
  attend_gradient(attention,
                  {grad.data, in.q, in.k, in.v, output.data, logsumexp.data, made.q, made.k, made.v});
  return {};
}

}  // namespace sluice::kernels
