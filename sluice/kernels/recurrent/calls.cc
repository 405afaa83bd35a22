// Handles the calls of recurrent layers.
#include <algorithm>

#include "sluice/kernels/recurrent/recurrent.h"

namespace sluice::kernels {
namespace {

using stablehlo::Dims;

struct RecurrentCall {
  Recurrent of{};
  Dims state, states, gates;  // states: of all steps; gates: in the number that the weight has
};

// The positions of operands that follow the first two in all calls; sizes may be missing.
struct Places {
  size_t state, sizes;
};

// Reads the first operands of all calls: operand 0, a row [parts * hidden] for each step and sequence, and
// operand 1, the weight of `gates` gates.
base::Result<RecurrentCall> read(const Call& call, int64_t parts, int64_t gates, Places places) {
  if (!has_recurrent()) return tl::unexpected<Error>(no_kernel("recurrent layer").error());
  RecurrentCall found;
  Recurrent& of = found.of;
  SLUICE_TRY(of.reverse, call.flag("reverse"));
  SLUICE_OK(call.filled_operand(1, "weight", 2, 2));
  SLUICE_TRY(const Tensor weight, call.operand(1, "weight"));
  const int64_t hidden = weight.dims[1];
  SLUICE_OK(call.operand(1, "weight", Dims{gates * hidden, hidden}));
  SLUICE_OK(call.filled_operand(places.state, "state", 2, 2));
  SLUICE_TRY(const Tensor state, call.operand(places.state, "state", Dims{kAny, hidden}));
  SLUICE_TRY(const Tensor all, call.filled_operand(0, "steps", 1));
  Dims dims(all.dims.begin(), all.dims.end());
  dims.back() = parts * hidden;
  SLUICE_OK(call.operand(0, "steps", dims));
  const int64_t batch = state.dims[0];
  const int64_t rows = static_cast<int64_t>(all.elements()) / dims.back(), steps = rows / batch;
  if (steps * batch != rows)
    return call.refuse("operand 0 (steps) has ", rows,
                       " rows, expected for each step the number of rows of operand ", places.state,
                       " (state), ", batch);
  of.steps = static_cast<size_t>(steps), of.batch = state.dim(0), of.hidden = weight.dim(1);
  of.weight = weight.data;
  if (call.num_operands() > places.sizes) {
    SLUICE_TRY(const Tensor of_steps, call.operand(places.sizes, "batch_sizes", Dims{steps}));
    of.sizes = of_steps.data;
  }
  found.state = {batch, hidden};
  found.states = {steps, batch, hidden};
  found.gates = {steps, batch, gates * hidden};
  return found;
}

// Copies an operand to a result, for the gradients of states, which are updated in place.
base::Result<float*> copied(const Call& call, size_t operand, size_t result, const char* name,
                            const Dims& dims) {
  SLUICE_TRY(const Tensor from, call.operand(operand, name, dims));
  SLUICE_TRY(const Tensor to, call.result(result, name, dims));
  std::copy_n(from.data, from.elements(), to.data);
  return to.data;
}

}  // namespace

base::Status call_lstm(const Call& call) {
  SLUICE_OK(call.takes({{4, 3}, {5, 3}}));
  SLUICE_TRY(const RecurrentCall c, read(call, 4, 4, {2, 4}));
  SLUICE_OK(call.in_place(0, 0));
  SLUICE_TRY(const Tensor hidden, call.operand(2, "hidden", c.state));
  SLUICE_TRY(const Tensor cell, call.operand(3, "cell", c.state));
  SLUICE_TRY(const Tensor gates, call.result(0, "gates"));
  SLUICE_TRY(const Tensor output, call.result(1, "output", c.states));
  SLUICE_TRY(const Tensor cells, call.result(2, "cells", c.states));
  lstm(c.of, {hidden.data, cell.data, gates.data, output.data, cells.data});
  return {};
}

base::Status call_lstm_gradient(const Call& call) {
  SLUICE_OK(call.takes({{7, 3}, {8, 3}}));
  SLUICE_TRY(const RecurrentCall c, read(call, 4, 4, {2, 7}));
  SLUICE_OK(call.in_place(0, 0));
  SLUICE_TRY(const Tensor cell, call.operand(2, "cell", c.state));
  SLUICE_TRY(const Tensor cells, call.operand(3, "cells", c.states));
  SLUICE_TRY(const Tensor grad_output, call.operand(4, "grad_output", c.states));
  SLUICE_TRY(const Tensor gates, call.result(0, "grad_gates"));
  SLUICE_TRY(float* const grad_hidden, copied(call, 5, 1, "grad_hidden", c.state));
  SLUICE_TRY(float* const grad_cell, copied(call, 6, 2, "grad_cell", c.state));
  lstm_gradient(c.of, {cell.data, cells.data, grad_output.data, gates.data, grad_hidden, grad_cell});
  return {};
}

base::Status call_gru(const Call& call) {
  SLUICE_OK(call.takes({{4, 2}, {5, 2}}));
  SLUICE_TRY(const RecurrentCall c, read(call, 3, 3, {2, 4}));
  SLUICE_TRY(const Tensor gates, call.operand(0, "gates"));
  SLUICE_TRY(const Tensor hidden, call.operand(2, "hidden", c.state));
  SLUICE_TRY(const Tensor bias, call.operand(3, "bias", Dims{3 * c.state[1]}));
  SLUICE_TRY(const Tensor activations,
             call.result(0, "activations", Dims{c.states[0], c.states[1], 4 * c.states[2]}));
  SLUICE_TRY(const Tensor output, call.result(1, "output", c.states));
  gru(c.of, {hidden.data, gates.data, bias.data, activations.data, output.data});
  return {};
}

base::Status call_gru_gradient(const Call& call) {
  SLUICE_OK(call.takes({{6, 3}, {7, 3}}));
  SLUICE_TRY(const RecurrentCall c, read(call, 4, 3, {2, 6}));
  SLUICE_TRY(const Tensor activations, call.operand(0, "activations"));
  SLUICE_TRY(const Tensor hidden, call.operand(2, "hidden", c.state));
  SLUICE_TRY(const Tensor output, call.operand(3, "output", c.states));
  SLUICE_TRY(const Tensor grad_output, call.operand(4, "grad_output", c.states));
  SLUICE_TRY(const Tensor grad_input, call.result(0, "grad_input", c.gates));
  SLUICE_TRY(const Tensor grad_state, call.result(1, "grad_state", c.gates));
  SLUICE_TRY(float* const grad_hidden, copied(call, 5, 2, "grad_hidden", c.state));
  gru_gradient(c.of, {hidden.data, output.data, activations.data, grad_output.data, grad_input.data,
                      grad_state.data, grad_hidden});
  return {};
}

base::Status call_rnn(const Call& call) {
  SLUICE_OK(call.takes({{3, 1}, {4, 1}}));
  SLUICE_TRY(const RecurrentCall c, read(call, 1, 1, {2, 3}));
  SLUICE_OK(call.in_place(0, 0));
  SLUICE_TRY(const bool relu, call.flag("relu"));
  SLUICE_TRY(const Tensor hidden, call.operand(2, "hidden", c.state));
  SLUICE_TRY(const Tensor output, call.result(0, "output"));
  rnn(c.of, {hidden.data, output.data, relu});
  return {};
}

base::Status call_rnn_gradient(const Call& call) {
  SLUICE_OK(call.takes({{4, 2}, {5, 2}}));
  SLUICE_TRY(const RecurrentCall c, read(call, 1, 1, {3, 4}));
  SLUICE_TRY(const bool relu, call.flag("relu"));
  SLUICE_TRY(const Tensor output, call.operand(0, "output"));
  SLUICE_TRY(const Tensor grad_output, call.operand(2, "grad_output", c.states));
  SLUICE_TRY(const Tensor grad_gates, call.result(0, "grad_gates", c.gates));
  SLUICE_TRY(float* const grad_hidden, copied(call, 3, 1, "grad_hidden", c.state));
  rnn_gradient(c.of, {output.data, grad_output.data, grad_gates.data, grad_hidden, relu});
  return {};
}

}  // namespace sluice::kernels
