// All steps of a recurrent layer in one direction, and of its gradient. Internal to this room.
//
// The weight is packed once for all steps. Sequences do not depend on each other: each thread has some of
// them from the first step to the last and waits for nobody. Few sequences and a weight that no core's cache
// holds are another case: there each thread has some of the hidden units, whose part of the weight stays with
// it, and all threads meet after each step.
#pragma once

#include "sluice/kernels/call.h"

namespace sluice::kernels {

// What all layers have. Gates stand beside each other: i, f, g, o of an LSTM, r, z, n of a GRU. States are
// [batch, hidden], those of all steps [steps, batch, hidden].
struct Recurrent {
  size_t steps, batch, hidden;
  const float* weight;  // [gates * hidden, hidden]: from a hidden state to the gates
  const float* sizes;   // [steps]: so many sequences, the first ones, have the step; null: all
  bool reverse;         // the last step comes first
};

// In what follows grad_hidden and grad_cell are the gradients of the last states; then those of the first
// ones. grad_output: of each step's hidden state.

struct Lstm {
  const float *hidden, *cell;  // the first states
  float* gates;                // what the input adds; then their values after their functions
  float *output, *cells;       // to these: each step's states
};
void lstm(const Recurrent& of, const Lstm& tensors);

struct LstmGradient {
  const float *cell, *cells, *grad_output;
  float* gates;  // after their functions; then their gradients
  float *grad_hidden, *grad_cell;
};
void lstm_gradient(const Recurrent& of, const LstmGradient& tensors);

// Activations are [steps, batch, 4 hidden]: r, z, n, and what the state adds to n before r scales it.
struct Gru {
  const float *hidden, *gates, *bias;  // the first state; what the input adds; what is added to the state's
  float *activations, *output;
};
void gru(const Recurrent& of, const Gru& tensors);

struct GruGradient {
  const float *hidden, *output, *activations, *grad_output;
  float *grad_input, *grad_state;  // of what the input and the state add to the gates
  float* grad_hidden;
};
void gru_gradient(const Recurrent& of, const GruGradient& tensors);

// The hidden state is the gate's tanh, or its positive part where `relu` says so.
struct Rnn {
  const float* hidden;
  float* output;  // what the input adds to the gate; then each step's state
  bool relu;
};
void rnn(const Recurrent& of, const Rnn& tensors);

struct RnnGradient {
  const float *output, *grad_output;
  float *grad_gates, *grad_hidden;
  bool relu;
};
void rnn_gradient(const Recurrent& of, const RnnGradient& tensors);

// Whether this CPU has registers for them.
bool has_recurrent();

// The handlers.
base::Status call_lstm(const Call& call);
base::Status call_lstm_gradient(const Call& call);
base::Status call_gru(const Call& call);
base::Status call_gru_gradient(const Call& call);
base::Status call_rnn(const Call& call);
base::Status call_rnn_gradient(const Call& call);

}  // namespace sluice::kernels
