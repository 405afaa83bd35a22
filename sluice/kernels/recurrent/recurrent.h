// Runs all steps of a recurrent layer in one direction, and of its gradient. Internal to this room.
//
// The weight is packed once for all steps. Sequences do not depend on each other: each thread has some of
// them from the first step to the last and waits for no other. With few sequences and a weight that no core's
// cache holds, each thread instead has some of the hidden units, whose part of the weight stays in its cache,
// and all threads meet after each step.
#pragma once

#include "sluice/kernels/call.h"

namespace sluice::kernels {

// The parameters of every layer. Gates are adjacent: i, f, g, o of an LSTM, r, z, n of a GRU. States are
// [batch, hidden]; states of all steps are [steps, batch, hidden].
struct Recurrent {
  size_t steps, batch, hidden;
  const float* weight;  // [gates * hidden, hidden]: from a hidden state to the gates
  const float* sizes;   // [steps]: the number of sequences, the first ones, that have the step; null: all
  bool reverse;         // the last step comes first
};

// In the gradients below, grad_hidden and grad_cell are on input the gradients of the last states, and on
// output of the first states. grad_output: the gradient of each step's hidden state.

struct Lstm {
  const float *hidden, *cell;  // the first states
  float* gates;                // on input what the input adds; on output their values after their functions
  float *output, *cells;       // output only: each step's states
};
void lstm(const Recurrent& of, const Lstm& tensors);

struct LstmGradient {
  const float *cell, *cells, *grad_output;
  float* gates;  // on input after their functions; on output their gradients
  float *grad_hidden, *grad_cell;
};
void lstm_gradient(const Recurrent& of, const LstmGradient& tensors);

// Activations are [steps, batch, 4 hidden]: r, z, n, and what the state adds to n before r scales it.
struct Gru {
  const float *hidden, *gates, *bias;  // the first state; the input's part; added to the state's part
  float *activations, *output;
};
void gru(const Recurrent& of, const Gru& tensors);

struct GruGradient {
  const float *hidden, *output, *activations, *grad_output;
  float *grad_input, *grad_state;  // of the input's and the state's parts of the gates
  float* grad_hidden;
};
void gru_gradient(const Recurrent& of, const GruGradient& tensors);

// The hidden state is the gate's tanh, or its positive part if `relu` is set.
struct Rnn {
  const float* hidden;
  float* output;  // on input what the input adds to the gate; on output each step's state
  bool relu;
};
void rnn(const Recurrent& of, const Rnn& tensors);

struct RnnGradient {
  const float *output, *grad_output;
  float *grad_gates, *grad_hidden;
  bool relu;
};
void rnn_gradient(const Recurrent& of, const RnnGradient& tensors);

// Returns whether this CPU has registers for these kernels.
bool has_recurrent();

// Handle the calls of recurrent layers.
base::Status call_lstm(const Call& call);
base::Status call_lstm_gradient(const Call& call);
base::Status call_gru(const Call& call);
base::Status call_gru_gradient(const Call& call);
base::Status call_rnn(const Call& call);
base::Status call_rnn_gradient(const Call& call);

}  // namespace sluice::kernels
