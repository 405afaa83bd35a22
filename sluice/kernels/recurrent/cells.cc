#include "sluice/kernels/recurrent/cells.h"

#include "sluice/kernels/lanes.h"
#include "sluice/kernels/rows/exponential.h"

namespace sluice::kernels {
namespace {

// Loads the first `count` floats, at most all of L; the other lanes are 0.
template <typename L>
SLUICE_INLINE void load_some(const float* from, size_t count, L& value) {
  if (count == kFloatsOf<L>) return load(from, value);
  float some[kFloatsOf<L>] = {};
  for (size_t i = 0; i < count; ++i) some[i] = from[i];
  load(some, value);
}
template <typename L>
SLUICE_INLINE void store_some(const L& value, size_t count, float* to) {
  if (count == kFloatsOf<L>) return store(value, to);
  float some[kFloatsOf<L>];
  store(value, some);
  for (size_t i = 0; i < count; ++i) to[i] = some[i];
}

// take_lanes computes up to a register of units, at a place. next_row moves to the next sequence.

template <typename L>
SLUICE_INLINE void take_lanes(const LstmStep& s, size_t column, size_t count) {
  float* const gates = s.gates + column;
  L i, f, g, o, cell;
  load_some(gates, count, i);
  load_some(gates + s.hidden, count, f);
  load_some(gates + 2 * s.hidden, count, g);
  load_some(gates + 3 * s.hidden, count, o);
  load_some(s.before + column, count, cell);
  logistic(i);
  logistic(f);
  tangent(g);
  logistic(o);
  cell = f * cell + i * g;
  store_some(i, count, gates);
  store_some(f, count, gates + s.hidden);
  store_some(g, count, gates + 2 * s.hidden);
  store_some(o, count, gates + 3 * s.hidden);
  store_some(cell, count, s.cells + column);
  tangent(cell);
  store_some(o * cell, count, s.output + column);
}
SLUICE_INLINE void next_row(LstmStep& s) {
  s.before += s.hidden, s.gates += 4 * s.hidden, s.cells += s.hidden, s.output += s.hidden;
}

template <typename L>
SLUICE_INLINE void take_lanes(const LstmGradientStep& s, size_t column, size_t count) {
  float* const gates = s.gates + column;
  L i, f, g, o, before, cell, grad, later, grad_cell;
  load_some(gates, count, i);
  load_some(gates + s.hidden, count, f);
  load_some(gates + 2 * s.hidden, count, g);
  load_some(gates + 3 * s.hidden, count, o);
  load_some(s.before + column, count, before);
  load_some(s.cells + column, count, cell);
  load_some(s.grad_output + column, count, grad);
  load_some(s.grad_hidden + column, count, later);
  load_some(s.grad_cell + column, count, grad_cell);
  tangent(cell);
  grad += later;
  grad_cell += grad * o * (1.f - cell * cell);
  store_some(grad_cell * g * i * (1.f - i), count, gates);
  store_some(grad_cell * before * f * (1.f - f), count, gates + s.hidden);
  store_some(grad_cell * i * (1.f - g * g), count, gates + 2 * s.hidden);
  store_some(grad * cell * o * (1.f - o), count, gates + 3 * s.hidden);
  store_some(grad_cell * f, count, s.grad_cell + column);
}
SLUICE_INLINE void next_row(LstmGradientStep& s) {
  s.before += s.hidden, s.cells += s.hidden, s.grad_output += s.hidden, s.grad_hidden += s.hidden;
  s.gates += 4 * s.hidden, s.grad_cell += s.hidden;
}

template <typename L>
SLUICE_INLINE void take_lanes(const GruStep& s, size_t column, size_t count) {
  const float *const gates = s.gates + column, *const bias = s.bias + column;
  float* const activations = s.activations + column;
  L r, z, n, state, input_r, input_z, bias_r, bias_z, bias_n, before;
  load_some(activations, count, r);
  load_some(activations + s.hidden, count, z);
  load_some(activations + 3 * s.hidden, count, state);
  load_some(gates, count, input_r);
  load_some(gates + s.hidden, count, input_z);
  load_some(gates + 2 * s.hidden, count, n);
  load_some(bias, count, bias_r);
  load_some(bias + s.hidden, count, bias_z);
  load_some(bias + 2 * s.hidden, count, bias_n);
  load_some(s.before + column, count, before);
  r += bias_r + input_r;
  z += bias_z + input_z;
  state += bias_n;
  logistic(r);
  logistic(z);
  n += r * state;
  tangent(n);
  store_some(r, count, activations);
  store_some(z, count, activations + s.hidden);
  store_some(n, count, activations + 2 * s.hidden);
  store_some(state, count, activations + 3 * s.hidden);
  store_some((before - n) * z + n, count, s.output + column);
}
SLUICE_INLINE void next_row(GruStep& s) {
  s.before += s.hidden, s.gates += 3 * s.hidden, s.activations += 4 * s.hidden, s.output += s.hidden;
}

template <typename L>
SLUICE_INLINE void take_lanes(const GruGradientStep& s, size_t column, size_t count) {
  const float* const activations = s.activations + column;
  float *const grad_input = s.grad_input + column, *const grad_state = s.grad_state + column;
  L r, z, n, state, before, grad, later;
  load_some(activations, count, r);
  load_some(activations + s.hidden, count, z);
  load_some(activations + 2 * s.hidden, count, n);
  load_some(activations + 3 * s.hidden, count, state);
  load_some(s.before + column, count, before);
  load_some(s.grad_output + column, count, grad);
  load_some(s.grad_hidden + column, count, later);
  grad += later;
  const L grad_n = grad * (1.f - z) * (1.f - n * n), grad_r = grad_n * state * r * (1.f - r),
          grad_z = grad * (before - n) * z * (1.f - z);
  store_some(grad_r, count, grad_input);
  store_some(grad_z, count, grad_input + s.hidden);
  store_some(grad_n, count, grad_input + 2 * s.hidden);
  store_some(grad_r, count, grad_state);
  store_some(grad_z, count, grad_state + s.hidden);
  store_some(grad_n * r, count, grad_state + 2 * s.hidden);
  store_some(grad * z, count, s.grad_hidden + column);
}
SLUICE_INLINE void next_row(GruGradientStep& s) {
  s.before += s.hidden, s.activations += 4 * s.hidden, s.grad_output += s.hidden;
  s.grad_input += 3 * s.hidden, s.grad_state += 3 * s.hidden, s.grad_hidden += s.hidden;
}

// These comparisons keep NaN as NaN.
template <typename L>
SLUICE_INLINE void take_lanes(const RnnStep& s, size_t column, size_t count) {
  L h;
  load_some(s.output + column, count, h);
  if (s.relu)
    h = h <= 0.f ? L{} : h;
  else
    tangent(h);
  store_some(h, count, s.output + column);
}
SLUICE_INLINE void next_row(RnnStep& s) { s.output += s.hidden; }

template <typename L>
SLUICE_INLINE void take_lanes(const RnnGradientStep& s, size_t column, size_t count) {
  L h, grad, later;
  load_some(s.output + column, count, h);
  load_some(s.grad_output + column, count, grad);
  load_some(s.grad_hidden + column, count, later);
  grad += later;
  grad = !s.relu ? grad * (1.f - h * h) : h <= 0.f ? L{} : grad;
  store_some(grad, count, s.grad_gates + column);
}
SLUICE_INLINE void next_row(RnnGradientStep& s) {
  s.output += s.hidden, s.grad_output += s.hidden, s.grad_hidden += s.hidden, s.grad_gates += s.hidden;
}

template <typename L, typename Step>
SLUICE_INLINE void take_by(Step s) {
  for (size_t row = 0; row < s.rows; ++row, next_row(s)) {
    size_t column = 0;
    for (; column + kFloatsOf<L> <= s.columns; column += kFloatsOf<L>) take_lanes<L>(s, column, kFloatsOf<L>);
    if (column < s.columns) take_lanes<L>(s, column, s.columns - column);
  }
}

}  // namespace

SLUICE_BY_LANES(take, (const LstmStep& step), (step))
SLUICE_BY_LANES(take, (const LstmGradientStep& step), (step))
SLUICE_BY_LANES(take, (const GruStep& step), (step))
SLUICE_BY_LANES(take, (const GruGradientStep& step), (step))
SLUICE_BY_LANES(take, (const RnnStep& step), (step))
SLUICE_BY_LANES(take, (const RnnGradientStep& step), (step))

}  // namespace sluice::kernels
