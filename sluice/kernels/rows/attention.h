// Attention: softmax(scale q k^T) v for each head, without the matrix of all scores in memory. Internal to
// this room.
//
// Blocks of queries are the columns of what is worked on: the scores of a block of keys are a product, [keys,
// queries], whose softmax runs down the columns, all of a register's lanes side by side, and which is then
// packed already for the product with the values. The maxima and sums run along from one block of keys to the
// next (Dao et al., FlashAttention, 2022), so that everything stays in the caches.
#pragma once

#include <cstddef>

#include "sluice/kernels/call.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Tensors lie as [batch, positions, heads, size], logarithms of sums as [batch, heads, queries].
struct Attention {
  size_t batch = 1, heads = 1, queries = 0, keys = 0, size = 0;
  bool causal = false;  // query i sees keys 0 to i
  float scale = 1;
  // Queries, keys and values lie as the parts of one tensor [batch, positions, 3, heads, size], and so do
  // their gradients.
  bool packed_qkv = false;
};

// Where has_lanes8(), with one key or more.
void attend(const Attention& attention, const float* q, const float* k, const float* v, float* output,
            float* logsumexp);

struct AttentionGradient {
  const float *grad_output, *q, *k, *v, *output, *logsumexp;
  float *grad_q, *grad_k, *grad_v;
};
void attend_gradient(const Attention& attention, const AttentionGradient& tensors);

// Whether there is a kernel that is worth a call.
bool has_attention(const stablehlo::AttentionCall& call);
// The handlers.
base::Status call_attention(const Call& call);
base::Status call_attention_gradient(const Call& call);

}  // namespace sluice::kernels
