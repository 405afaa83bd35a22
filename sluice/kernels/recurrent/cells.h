// One step of some hidden units of some sequences, after the state's product. Internal to this room.
#pragma once

#include <cstddef>

namespace sluice::kernels {

// Pointers are to the first unit of the first sequence; where there are several gates, of the first one. From
// a sequence to the next it is so many floats: `hidden` of them, or of gates as many times as there are; from
// a gate to the next, `hidden`.
struct Units {
  size_t rows, columns, hidden;
};

// What a sequence's state was before the step: `before`. The gradients of the states behind the step become
// those of the states before it, but for what goes through the weight.

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
  float *activations, *output;  // activations: before, what the state adds to r, z and n, the last one fourth
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

// Where has_lanes8().
void take(const LstmStep& step);
void take(const LstmGradientStep& step);
void take(const GruStep& step);
void take(const GruGradientStep& step);
void take(const RnnStep& step);
void take(const RnnGradientStep& step);

}  // namespace sluice::kernels
