// Attention: softmax(scale q k^T + mask) v for each head, with optional dropout between softmax and product,
// without the matrix of all scores in memory. Internal to this room.
//
// Blocks of queries are the columns of the matrices: the scores of a block of keys are a product, [keys,
// queries], whose softmax runs down the columns in all of a register's lanes at once, and which is then
// already packed for the product with the values. Maxima and sums are carried from one block of keys to the
// next (Dao et al., FlashAttention, 2022), so that everything stays in the caches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/kernels/call.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Numbers that are added to the scores: [batch or 1, heads or 1, queries or 1, keys]. A step of 0: the same
// for all.
struct Mask {
  const float* data = nullptr;  // null: no mask
  size_t batch_step = 0, head_step = 0, query_step = 0;
};

// The dropout of probabilities (see stablehlo/attention_dropout.h).
struct Dropout {
  const uint32_t* seeds = nullptr;  // [2, batch, heads, queries]; null: no dropout
  float p = 0;                      // in [0, 1]
};

// Tensors are [batch, positions, heads, size], logarithms of sums [batch, heads, queries].
struct Attention {
  size_t batch = 1, heads = 1;
  size_t heads_of_keys = 0;  // each serves consecutive heads, all the same number; 0: one for each head
  size_t queries = 0, keys = 0, size = 0;
  bool causal = false;  // query i sees keys 0 to i
  float scale = 1;
  Mask mask = {};
  Dropout dropout = {};
  // Whether queries, keys and values are the parts of one tensor [batch, positions, 3, heads, size], and so
  // are their gradients.
  bool packed_qkv = false;

  size_t sharing() const { return heads_of_keys == 0 ? 1 : heads / heads_of_keys; }  // heads per key head
};

// Needs has_lanes8() and at least one key. A query that sees no key has an output of 0 and an infinite
// logarithm.
void attend(const Attention& attention, const float* q, const float* k, const float* v, float* output,
            float* logsumexp);

struct AttentionGradient {
  const float *grad_output, *q, *k, *v, *output, *logsumexp;
  float *grad_q, *grad_k, *grad_v;
};
void attend_gradient(const Attention& attention, const AttentionGradient& tensors);

// Returns whether there is a kernel that is worth a call.
bool has_attention(const stablehlo::AttentionCall& call);
// Handle the calls of attention.
base::Status call_attention(const Call& call);
base::Status call_attention_gradient(const Call& call);

}  // namespace sluice::kernels
