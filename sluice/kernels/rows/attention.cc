#include "sluice/kernels/rows/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/gemm/gemm_panels.h"
#include "sluice/kernels/gemm/micro_kernel.h"
#include "sluice/kernels/rows/exponential.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

// Keys of a block: with the widest panel of queries they take 32 KiB.
constexpr size_t kKeysOfBlock = 128;

// Rows that are prefetched: those of one head lie too far apart for the hardware's prefetcher.
constexpr size_t kPrefetchRows = 16;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename L>
SLUICE_INLINE void scale_floats_by(float* x, size_t floats, float factor) {
  L value;
  for (size_t i = 0; i < floats; i += kFloatsOf<L>) {
    load(x + i, value);
    store(value * factor, x + i);
  }
}

// Scores [keys, a panel] become exponentials of their distances from the largest score so far. `max` and
// `sum` run along; what was summed up before, in `output` [size, a panel] too, is brought to the new maxima.
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

// x [rows, a panel], each column divided by its number.
template <typename L>
SLUICE_INLINE void divide_columns_by(float* x, size_t rows, const float* divisors) {
  constexpr size_t kVectors = kTileVectors<L>, kWidth = kTileColumns<L>;
  L factors[kVectors], value;
#pragma GCC unroll 4
  for (size_t j = 0; j < kVectors; ++j) {
    load(divisors + j * kFloatsOf<L>, value);
    factors[j] = 1.f / value;
  }
  for (size_t row = 0; row < rows; ++row)
#pragma GCC unroll 4
    for (size_t j = 0; j < kVectors; ++j) {
      load(x + row * kWidth + j * kFloatsOf<L>, value);
      store(value * factors[j], x + row * kWidth + j * kFloatsOf<L>);
    }
}

// The sums over the rows of a b, both [rows, a panel].
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

// Scores [keys, a panel] become probabilities, and the probabilities' gradients those of the scores.
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

SLUICE_BY_LANES(scale_floats, (float* x, size_t floats, float factor), (x, floats, factor))
SLUICE_BY_LANES(take_exponentials,
                (float* scores, size_t keys, float* max, float* sum, float* output, size_t size),
                (scores, keys, max, sum, output, size))
SLUICE_BY_LANES(divide_columns, (float* x, size_t rows, const float* divisors), (x, rows, divisors))
SLUICE_BY_LANES(multiply_columns, (const float* a, const float* b, size_t rows, float* to), (a, b, rows, to))
SLUICE_BY_LANES(take_gradients,
                (float* scores, float* gradients, size_t keys, const float* logsumexp, const float* delta),
                (scores, gradients, keys, logsumexp, delta))

// One head's matrix in a tensor of so many positions: [positions, size], whose rows lie `step` floats apart.
struct Head {
  size_t first, step;
};
Head head_of(const Attention& of, size_t positions, size_t number, size_t parts = 1) {
  const size_t batch = number / of.heads, head = number % of.heads;
  return {(batch * positions * parts * of.heads + head) * of.size, parts * of.heads * of.size};
}
// The same of queries, keys, values and their gradients.
Head part_of(const Attention& of, size_t positions, size_t number) {
  return head_of(of, positions, number, of.packed_qkv ? 3 : 1);
}

// A panel of queries.
struct Panel {
  size_t first, count;  // queries
  size_t keys;          // those that one of them sees
};
size_t panels_of_queries(const Attention& of) { return panels_of(of.queries); }
Panel panel_of(const Attention& of, size_t number) {
  const size_t first = number * tile_columns(), count = std::min(tile_columns(), of.queries - first);
  return {first, count, of.causal ? std::min(of.keys, first + count) : of.keys};
}

// Hides from each query the keys behind it.
void hide(const Panel& panel, size_t first_key, size_t keys, float* scores) {
  const size_t width = tile_columns();
  for (size_t key = std::max(first_key, panel.first + 1); key < first_key + keys; ++key)
    std::fill_n(scores + (key - first_key) * width, std::min(width, key - panel.first), -kInfinity);
}

// One head's keys or values, packed for many panels of queries.
void pack_head(const Head& head, const float* tensor, size_t positions, size_t size, float* to) {
  for (size_t row = 0; row < positions; ++row) {
    const float* const from = tensor + head.first + row * head.step;
    prefetch<false>(from + kPrefetchRows * head.step, size);
    std::copy_n(from, size, to + row * size);
  }
}
// The same as [tiles, positions, kTileRows]: its transpose is the left side of a product.
void pack_transposed(const Head& head, const float* tensor, size_t positions, size_t size, float* to) {
  pack_rows({tensor + head.first, head.step, true}, size, positions, to);
}
size_t transposed_floats(size_t positions, size_t size) {
  return (size + kTileRows - 1) / kTileRows * kTileRows * positions;
}

// [keys, a panel]: rows of pack_head, times what is packed as [size, a panel]. With few queries half of the
// panel is not written, here and below: nobody looks at what is made of it.
void multiply_keys(const float* rows, size_t keys, const float* packed, size_t size, size_t queries,
                   float* to) {
  multiply_tiles({rows, kTileRows * size, size, 1, packed, size, to, tile_columns(), false, queries}, keys);
}
// [size, a panel]: what pack_transposed made of `positions`, from some key on, times a block's scores, added
// up.
void multiply_sizes(const float* transposed, size_t positions, size_t keys, const float* scores, size_t size,
                    size_t queries, float* to) {
  multiply_tiles(
      {transposed, kTileRows * positions, 1, kTileRows, scores, keys, to, tile_columns(), true, queries},
      size);
}

// Some of one head's panels of queries.
class HeadAttention {
 public:
  HeadAttention(const Attention& of, const float* k, const float* v, size_t head)
      : of_(of),
        head_(head),
        scratch_({{keys_, of.keys * of.size},
                  {values_, transposed_floats(of.keys, of.size)},
                  {queries_, of.size * width_},
                  {sums_, of.size * width_},
                  {scores_, kKeysOfBlock * width_}}) {
    const Head k_head = part_of(of, of.keys, head);
    pack_head(k_head, k, of.keys, of.size, keys_);
    pack_transposed(k_head, v, of.keys, of.size, values_);
  }

  void run_panel(const Panel& panel, const float* q, float* output, float* logsumexp) {
    const Head q_head = part_of(of_, of_.queries, head_), output_head = head_of(of_, of_.queries, head_);
    float* const to = output + output_head.first + panel.first * output_head.step;
    const size_t floats = of_.size * width_;
    for (size_t i = 0; i < panel.count; ++i) prefetch<true>(to + i * output_head.step, of_.size);
    alignas(64) float max[kMaxTileColumns], sum[kMaxTileColumns] = {};
    std::fill_n(max, width_, -kInfinity);
    std::fill_n(sums_, floats, 0.f);
    pack_panel({q + q_head.first + panel.first * q_head.step, q_head.step, true}, of_.size, panel.count, 0,
               queries_);
    scale_floats(queries_, floats, of_.scale);
    for (size_t key = 0; key < panel.keys; key += kKeysOfBlock) {
      const size_t keys = std::min(kKeysOfBlock, panel.keys - key);
      multiply_keys(keys_ + key * of_.size, keys, queries_, of_.size, panel.count, scores_);
      if (of_.causal) hide(panel, key, keys, scores_);
      take_exponentials(scores_, keys, max, sum, sums_, of_.size);
      multiply_sizes(values_ + key * kTileRows, of_.keys, keys, scores_, of_.size, panel.count, sums_);
    }
    divide_columns(sums_, of_.size, sum);
    transpose(sums_, tile_columns(), of_.size, panel.count, to, output_head.step);
    for (size_t i = 0; i < panel.count; ++i)
      logsumexp[head_ * of_.queries + panel.first + i] = max[i] + std::log(sum[i]);
  }

 private:
  const Attention& of_;
  const size_t head_, width_ = tile_columns();
  float *keys_, *values_, *queries_, *sums_, *scores_;
  const ScratchArrays scratch_;
};

// The rows of some queries, packed as b of a product: panels of `size`. What lies behind their
// end in the last panel counts nothing.
void pack_query_rows(const float* rows, size_t step, size_t queries, size_t size, float* to) {
  const size_t width = tile_columns();
  for (size_t column = 0; column < size; column += width)
    for (size_t row = 0; row < queries; ++row, to += width)
      std::copy_n(rows + row * step + column, std::min(width, size - column), to);
}

// One head's gradients. The sums of keys and values lie in panels of `size`.
class HeadGradient {
 public:
  HeadGradient(const Attention& of, const AttentionGradient& tensors, size_t head)
      : of_(of),
        t_(tensors),
        head_(head),
        q_head_(part_of(of, of.queries, head)),
        k_head_(part_of(of, of.keys, head)),
        output_head_(head_of(of, of.queries, head)),
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
                  {transposed_keys_, transposed_floats(of.keys, of.size)}}) {
    pack_head(k_head_, tensors.k, of.keys, of.size, keys_);
    pack_head(k_head_, tensors.v, of.keys, of.size, values_);
    pack_transposed(k_head_, tensors.k, of.keys, of.size, transposed_keys_);
  }

  void run() {
    std::fill_n(sums_of_keys_, sums(), 0.f);
    std::fill_n(sums_of_values_, sums(), 0.f);
    for (size_t i = 0; i < panels_of_queries(of_); ++i) run_panel(panel_of(of_, i));
    scale_floats(sums_of_keys_, sums(), of_.scale);
    write_sums(sums_of_keys_, t_.grad_k);
    write_sums(sums_of_values_, t_.grad_v);
  }

 private:
  size_t packed() const { return of_.size * width_; }                           // [size, queries]
  size_t rows() const { return panels_of(of_.size) * width_ * width_; }         // [panels, queries, size]
  size_t sums() const { return panels_of(of_.size) * panel_floats(of_.keys); }  // [panels, keys, size]

  void run_panel(const Panel& panel) {
    const size_t q_offset = q_head_.first + panel.first * q_head_.step;
    const size_t output_offset = output_head_.first + panel.first * output_head_.step;
    const auto pack = [&](const float* from, size_t step, float* to) {
      pack_panel({from, step, true}, of_.size, panel.count, 0, to);
    };
    alignas(64) float delta[kMaxTileColumns], logsumexp[kMaxTileColumns] = {};
    std::copy_n(t_.logsumexp + head_ * of_.queries + panel.first, panel.count, logsumexp);
    pack(t_.grad_output + output_offset, output_head_.step, grad_);
    pack(t_.output + output_offset, output_head_.step, sums_of_queries_);
    multiply_columns(grad_, sums_of_queries_, of_.size, delta);
    pack(t_.q + q_offset, q_head_.step, queries_);
    scale_floats(queries_, packed(), of_.scale);
    pack_query_rows(t_.q + q_offset, q_head_.step, panel.count, of_.size, query_rows_);
    pack_query_rows(t_.grad_output + output_offset, output_head_.step, panel.count, of_.size, grad_rows_);
    std::fill_n(sums_of_queries_, packed(), 0.f);
    for (size_t key = 0; key < panel.keys; key += kKeysOfBlock)
      run_block(panel, key, std::min(kKeysOfBlock, panel.keys - key), logsumexp, delta);
    scale_floats(sums_of_queries_, packed(), of_.scale);
    transpose(sums_of_queries_, tile_columns(), of_.size, panel.count, t_.grad_q + q_offset, q_head_.step);
  }

  void run_block(const Panel& panel, size_t key, size_t keys, const float* logsumexp, const float* delta) {
    const size_t at = key * of_.size;
    multiply_keys(keys_ + at, keys, queries_, of_.size, panel.count, scores_);
    if (of_.causal) hide(panel, key, keys, scores_);
    multiply_keys(values_ + at, keys, grad_, of_.size, panel.count, gradients_);
    take_gradients(scores_, gradients_, keys, logsumexp, delta);
    multiply_sizes(transposed_keys_ + key * kTileRows, of_.keys, keys, gradients_, of_.size, panel.count,
                   sums_of_queries_);
    add_rows(gradients_, panel, key, keys, query_rows_, sums_of_keys_);
    add_rows(scores_, panel, key, keys, grad_rows_, sums_of_values_);
  }

  // sums [keys, size] += scores [keys, queries] rows [queries, size].
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
  const size_t head_, width_ = tile_columns();
  const Head q_head_, k_head_, output_head_;
  float *queries_, *grad_, *sums_of_queries_, *query_rows_, *grad_rows_, *scores_, *gradients_,
      *sums_of_keys_, *sums_of_values_, *keys_, *values_, *transposed_keys_;
  const ScratchArrays scratch_;
};

}  // namespace

void attend(const Attention& attention, const float* q, const float* k, const float* v, float* output,
            float* logsumexp) {
  // Few heads are shared by several threads, each of which packs keys and values again. Every so many panels:
  // with `causal` the last ones see the most keys.
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
  parallel_for(attention.batch * attention.heads,
               [&](size_t head) { HeadGradient(attention, tensors, head).run(); });
}

bool has_attention(const stablehlo::AttentionCall& call) {
  constexpr int64_t kMaxSize = 256;
  // With fewer queries most of a panel is empty.
  const auto min_queries = static_cast<int64_t>(tile_columns() / 4);
  return has_lanes8() && call.size <= kMaxSize && call.queries >= min_queries && call.keys > 0;
}

namespace {

// `like_output`: a tensor [batch, queries, heads, size]. q is the operand `first`, with k and v behind it if
// they are not packed in one tensor.
base::Result<Attention> attention_of(const Call& call, const Tensor& like_output, size_t first,
                                     bool packed_qkv) {
  if (!has_lanes8()) return tl::unexpected<Error>(no_kernel("attention").error());
  SLUICE_TRY(const bool causal, call.flag("causal"));
  SLUICE_TRY(const double scale, call.real("scale"));
  Tensor keys = like_output;
  if (!packed_qkv) {
    SLUICE_TRY(keys, call.filled_operand(first + 1, "k", 4, 4));
  }
  return Attention{.batch = like_output.dim(0),
                   .heads = like_output.dim(2),
                   .queries = like_output.dim(1),
                   .keys = keys.dim(1),
                   .size = like_output.dim(3),
                   .causal = causal,
                   .scale = static_cast<float>(scale),
                   .packed_qkv = packed_qkv};
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
// read(i, dims): the i-th of them, or all.
template <typename Read>
base::Result<Parts> parts_from(const Attention& a, const Read& read) {
  const size_t part = a.heads * a.size;
  if (a.packed_qkv) {
    SLUICE_TRY(const Tensor all, read(0, dims_of({a.batch, a.queries, 3 * part})));
    return Parts{all.data, all.data + part, all.data + 2 * part};
  }
  const stablehlo::Dims dims_of_keys = dims_of({a.batch, a.keys, a.heads, a.size});
  SLUICE_TRY(const Tensor q, read(0, dims_of_output(a)));
  SLUICE_TRY(const Tensor k, read(1, dims_of_keys));
  SLUICE_TRY(const Tensor v, read(2, dims_of_keys));
  return Parts{q.data, k.data, v.data};
}

}  // namespace

base::Status call_attention(const Call& call) {
  SLUICE_OK(call.takes({{3, 2}, {1, 2}}));
  SLUICE_TRY(const Tensor output, call.filled_result(0, "output", 4, 4));
  SLUICE_TRY(const Attention attention, attention_of(call, output, 0, call.num_operands() == 1));
  SLUICE_TRY(const Tensor logsumexp, call.result(1, "logsumexp", dims_of_logsumexp(attention)));
  SLUICE_TRY(const Parts in, parts_from(attention, [&](size_t i, const stablehlo::Dims& dims) {
               return call.operand(i, "q, k, v", dims);
             }));
  attend(attention, in.q, in.k, in.v, output.data, logsumexp.data);
  return {};
}

base::Status call_attention_gradient(const Call& call) {
  SLUICE_OK(call.takes({{6, 3}, {4, 1}}));
  SLUICE_TRY(const Tensor grad, call.filled_operand(0, "grad_output", 4, 4));
  SLUICE_TRY(const Attention attention, attention_of(call, grad, 1, call.num_results() == 1));
  SLUICE_TRY(const Parts in, parts_from(attention, [&](size_t i, const stablehlo::Dims& dims) {
               return call.operand(1 + i, "q, k, v", dims);
             }));
  SLUICE_TRY(const Parts made, parts_from(attention, [&](size_t i, const stablehlo::Dims& dims) {
               return call.result(i, "grad_q, grad_k, grad_v", dims);
             }));
  const size_t behind = call.num_operands() - 2;
  SLUICE_TRY(const Tensor output, call.operand(behind, "output", grad.dims));
  SLUICE_TRY(const Tensor logsumexp, call.operand(behind + 1, "logsumexp", dims_of_logsumexp(attention)));
  attend_gradient(attention,
                  {grad.data, in.q, in.k, in.v, output.data, logsumexp.data, made.q, made.k, made.v});
  return {};
}

}  // namespace sluice::kernels
