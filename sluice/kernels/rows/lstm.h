// All steps of an LSTM layer in one direction, and of its gradient. Internal to this room.
//
// The weight is packed once for all steps. Sequences do not depend on each other: each thread has some of
// them from the first step to the last and waits for nobody. Few sequences and a weight that no core's cache
// holds are another case: there each thread has some of the hidden units, whose part of the weight stays with
// it, and all threads meet after each step.
#pragma once

#include "sluice/kernels/call.h"

namespace sluice::kernels {

// Gates stand beside each other: i, f, g, o.
struct Lstm {
  size_t steps, batch, hidden;
  const float* weight;  // [4 hidden, hidden]: from a hidden state to the gates
  const float* sizes;   // [steps]: so many sequences, the first ones, have the step; null: all
  bool reverse;         // the last step comes first
};

// gates: what the input adds [steps, batch, 4 hidden]; then their values after their functions. hidden and
// cell: the first states [batch, hidden]. To output and cells: each step's [steps, batch, hidden].
void lstm(const Lstm& of, const float* hidden, const float* cell, float* gates, float* output, float* cells);

// gates: as above, after their functions; then their gradients. grad_hidden and grad_cell: the gradients of
// the last states; then of the first ones.
struct LstmGradient {
  const float *cell, *cells, *grad_output;
  float *gates, *grad_hidden, *grad_cell;
};
void lstm_gradient(const Lstm& of, const LstmGradient& tensors);

// Whether this CPU has registers for it.
bool has_lstm();

// The handlers.
base::Status call_lstm(const Call& call);
base::Status call_lstm_gradient(const Call& call);

}  // namespace sluice::kernels
