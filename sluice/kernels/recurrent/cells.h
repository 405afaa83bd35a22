// Computes one step of some hidden units of some sequences, after the state's product. Internal to this room.
#pragma once

#include <cstddef>

namespace sluice::kernels {

// Some hidden units of some sequences. Pointers point to the first unit of the first sequence, in a tensor
// with several gates to its first gate. The distance from a gate to the next is `hidden` floats; from a
// sequence to the next it is `hidden` floats times the number of gates.
struct Units {
  size_t rows, columns, hidden;
};

// `before` is a sequence's state before the step. The gradients of the states after the step become the
// gradients of the states before it, without the part that goes through the weight.

struct LstmStep : Units {
  const float* before;  // the cells
  float *gates, *cells, *output;
};
struct LstmGradientStep : Units {
  const float *before, *cells, *grad_output, *grad_hidden;
  float *gates, *grad_cell;
};

struct GruStep : Units {
  const float *before, *gates, *bias;
  float *activations, *output;  // activations, on input: the state's parts of r, z and, as the fourth, n
};
struct GruGradientStep : Units {
  const float *before, *activations, *grad_output;
  float *grad_input, *grad_state, *grad_hidden;
};

struct RnnStep : Units {
  float* output;
  bool relu;
};
struct RnnGradientStep : Units {
  const float *output, *grad_output, *grad_hidden;
  float* grad_gates;
  bool relu;
};

// Need has_lanes8().
void take(const LstmStep& step);
void take(const LstmGradientStep& step);
void take(const GruStep& step);
void take(const GruGradientStep& step);
void take(const RnnStep& step);
void take(const RnnGradientStep& step);

}  // namespace sluice::kernels
