// lstm, gru, rnn_tanh and rnn_relu as loops. LibTorch would split them into about twenty operations per step.
// Here each layer and direction is one product over all steps, and one operation of Sluice's own for the rest
// (ops/layers/recurrent.cc), so that a program does not grow with the length of a sequence.
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/lstm_native.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "sluice/device/operators/own_operation.h"
#include "sluice/device/operators/recurrent.h"
#include "sluice/device/program/record.h"
#include "sluice/device/storage.h"

namespace sluice::device {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptionalTensor = std::optional<Tensor>;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

// Each row of ops/layers/recurrent.cc documents its results.
constexpr const char* kSchemas[] = {
    "lstm_steps(Tensor gates, Tensor hidden, Tensor cell, Tensor weight, Tensor? batch_sizes, bool reverse, "
    "bool for_gradient) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "lstm_steps_backward(Tensor? grad_output, Tensor? grad_hidden, Tensor? grad_cell, Tensor activations, "
    "Tensor cells, Tensor cell, Tensor weight, Tensor? batch_sizes, bool reverse) -> (Tensor, Tensor, "
    "Tensor)",
    "gru_steps(Tensor gates, Tensor hidden, Tensor weight, Tensor? bias, Tensor? batch_sizes, bool reverse, "
    "bool for_gradient) -> (Tensor, Tensor, Tensor)",
    "gru_steps_backward(Tensor? grad_output, Tensor? grad_hidden, Tensor activations, Tensor output, "
    "Tensor hidden, Tensor weight, Tensor? batch_sizes, bool reverse) -> (Tensor, Tensor, Tensor)",
    "rnn_steps(Tensor gates, Tensor hidden, Tensor weight, Tensor? batch_sizes, bool reverse, bool relu) -> "
    "(Tensor, Tensor)",
    "rnn_steps_backward(Tensor? grad_output, Tensor? grad_hidden, Tensor output, Tensor weight, "
    "Tensor? batch_sizes, bool reverse, bool relu) -> (Tensor, Tensor)",
};

OptionalTensor optional(const Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

int64_t gates_of(Cell cell) { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }

// The work of one layer in one direction, after the input's product.
struct Steps {
  Cell kind = Cell::kLstm;
  Tensor gates;         // [steps, batch, gates * hidden]: the input's contribution, with the biases
  Tensor hidden, cell;  // [batch, hidden]; only an LSTM has cells
  Tensor weight, bias;  // for the state; only a GRU has the bias here
  Tensor batch_sizes;   // undefined if all sequences have the same length
  bool reverse = false;

  variable_list tensors() const { return {gates, hidden, cell, weight, bias, batch_sizes}; }
};

// The output of each step, the last output, and the last cell; then the values that the gradient needs.
struct Made {
  Tensor output, hidden, cell, cells, activations;
};

Made forward_of(const Steps& s, bool for_gradient) {
  Made made;
  const OptionalTensor sizes = optional(s.batch_sizes);
  if (s.kind == Cell::kLstm) {
    std::tie(made.output, made.hidden, made.cell, made.cells, made.activations) = call_own<Five>(
        "sluice::lstm_steps", s.gates, s.hidden, s.cell, s.weight, sizes, s.reverse, for_gradient);
  } else if (s.kind == Cell::kGru) {
    std::tie(made.output, made.hidden, made.activations) = call_own<Three>(
        "sluice::gru_steps", s.gates, s.hidden, s.weight, optional(s.bias), sizes, s.reverse, for_gradient);
  } else {
    std::tie(made.output, made.hidden) = call_own<Two>("sluice::rnn_steps", s.gates, s.hidden, s.weight,
                                                       sizes, s.reverse, s.kind == Cell::kRelu);
  }
  return made;
}

// Returns the hidden state at the beginning of each step: [steps * batch, hidden].
Tensor states_before(const Steps& s, const Tensor& output) {
  const Tensor first = s.hidden.unsqueeze(0);
  const Tensor rest = output.narrow(0, s.reverse ? 1 : 0, output.size(0) - 1);
  return (s.reverse ? at::cat({rest, first}) : at::cat({first, rest})).flatten(0, 1);
}

// Returns the gradients of Steps::tensors().
variable_list backward_of(const Steps& s, const Made& made, const variable_list& gradients) {
  const OptionalTensor of_output = optional(gradients[0]), of_hidden = optional(gradients[1]);
  const OptionalTensor sizes = optional(s.batch_sizes);
  Tensor of_gates, of_state, of_first, of_cell, of_bias;
  if (s.kind == Cell::kLstm) {
    std::tie(of_gates, of_first, of_cell) =
        call_own<Three>("sluice::lstm_steps_backward", of_output, of_hidden, optional(gradients[2]),
                        made.activations, made.cells, s.cell, s.weight, sizes, s.reverse);
    of_state = of_gates;
  } else if (s.kind == Cell::kGru) {
    std::tie(of_gates, of_state, of_first) =
        call_own<Three>("sluice::gru_steps_backward", of_output, of_hidden, made.activations, made.output,
                        s.hidden, s.weight, sizes, s.reverse);
    if (s.bias.defined()) of_bias = of_state.flatten(0, 1).sum(0).to(s.bias.scalar_type());
  } else {
    std::tie(of_gates, of_first) =
        call_own<Two>("sluice::rnn_steps_backward", of_output, of_hidden, made.output, s.weight, sizes,
                      s.reverse, s.kind == Cell::kRelu);
    of_state = of_gates;
  }
  const Tensor states = states_before(s, made.output).to(s.weight.scalar_type());
  return {of_gates, of_first, of_cell, at::mm(of_state.flatten(0, 1).t(), states), of_bias, {}};
}

class StepsFunction : public torch::autograd::Function<StepsFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& gates, const Tensor& hidden,
                               const OptionalTensor& cell, const Tensor& weight, const OptionalTensor& bias,
                               const OptionalTensor& batch_sizes, int64_t kind, bool reverse) {
    const Steps s{static_cast<Cell>(kind),        gates,  hidden,
                  cell.value_or(Tensor()),        weight, bias.value_or(Tensor()),
                  batch_sizes.value_or(Tensor()), reverse};
    const Made made = forward_of(s, /*for_gradient=*/true);
    variable_list saved = s.tensors();
    saved.insert(saved.end(), {made.output, made.cells, made.activations});
    saved[0] = Tensor();  // the gradient does not need it
    context->save_for_backward(std::move(saved));
    context->set_materialize_grads(false);
    context->saved_data["kind"] = kind;
    context->saved_data["reverse"] = reverse;
    variable_list results = {made.output, made.hidden};
    if (made.cell.defined()) results.push_back(made.cell);
    return results;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (at::GradMode::is_enabled())
      throw_error(
          Code::kUnimplemented,
          "the xla device's recurrent layers have no second derivative (create_graph); build the layer "
          "of cells (torch::nn::LSTMCell and the like), which have one");
    const variable_list saved = context->get_saved_variables();
    const Steps s{static_cast<Cell>(context->saved_data["kind"].toInt()),
                  saved[0],
                  saved[1],
                  saved[2],
                  saved[3],
                  saved[4],
                  saved[5],
                  context->saved_data["reverse"].toBool()};
    variable_list result = backward_of(s, {saved[6], {}, {}, saved[7], saved[8]}, gradients);
    result.resize(8);
    return result;
  }
};

Made run(const Steps& s) {
  const variable_list tensors = s.tensors();
  const bool differentiated =
      at::GradMode::is_enabled() && std::any_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
        return tensor.defined() && tensor.requires_grad();
      });
  if (!differentiated) return forward_of(s, /*for_gradient=*/false);
  const variable_list made =
      StepsFunction::apply(s.gates, s.hidden, optional(s.cell), s.weight, optional(s.bias),
                           optional(s.batch_sizes), static_cast<int64_t>(s.kind), s.reverse);
  return {made[0], made[1], made.size() > 2 ? made[2] : Tensor(), {}, {}};
}

// The parameters of one layer in one direction.
struct Layer {
  Tensor input_weight, weight, input_bias, bias;
};

Layer layer_of(const Network& n, int64_t number, int64_t features, int64_t hidden) {
  const size_t each = n.has_biases ? 4 : 2, first = static_cast<size_t>(number) * each;
  const int64_t rows = gates_of(n.kind) * hidden;
  const auto take = [&](size_t i, at::IntArrayRef sizes) {
    const Tensor& found = n.params[first + i];
    if (!found.sizes().equals(sizes))
      n.fail("params[", first + i, "] of shape ", sizes, ", found ", found.sizes());
    return found;
  };
  Layer layer{take(0, {rows, features}), take(1, {rows, hidden}), {}, {}};
  if (n.has_biases) layer.input_bias = take(2, {rows}), layer.bias = take(3, {rows});
  return layer;
}

// A batch of sequences: [steps * batch, …] if all have one length or are padded to one; else, for each step,
// the rows of the sequences that reach it.
struct Sequences {
  int64_t steps = 0, batch = 0;
  Tensor batch_sizes;       // [steps], on the device; undefined if all have one length
  Tensor to_all, from_all;  // of packed rows: for each place the row of data, and for each row its place

  Tensor with_steps(const Tensor& rows) const {
    return (to_all.defined() ? rows.index_select(0, to_all) : rows).view({steps, batch, rows.size(1)});
  }
  Tensor rows_of(const Tensor& steps_of) const {
    const Tensor rows = steps_of.flatten(0, 1);
    return from_all.defined() ? rows.index_select(0, from_all) : rows;
  }
};

// Casts a tensor to autocast's type for products, if autocast is on.
Tensor for_product(const Tensor& tensor) {
  if (!at::autocast::is_autocast_enabled(at::kXLA)) return tensor;
  return at::autocast::cached_cast(at::autocast::get_autocast_dtype(at::kXLA), tensor, at::kXLA);
}

Made run_layer(const Network& n, const Layer& layer, const Sequences& sequences, const Tensor& rows,
               const Tensor& hidden, const Tensor& cell, bool reverse) {
  // The state's bias is added to the input's, except in a GRU, which scales the state's contribution to n.
  const bool apart = n.kind == Cell::kGru;
  const Tensor bias = n.has_biases && !apart ? layer.input_bias + layer.bias : layer.input_bias;
  const Tensor gates = sequences.with_steps(at::linear(rows, layer.input_weight, optional(bias)));
  // Plain layers keep their state in the gates' type, in which autocast also multiplies.
  const bool gated = n.kind == Cell::kLstm || n.kind == Cell::kGru;
  const at::ScalarType state =
      gated ? at::promote_types(gates.scalar_type(), hidden.scalar_type()) : gates.scalar_type();
  return run({n.kind, gates, hidden.to(state), cell.defined() ? cell.to(state) : cell,
              for_product(layer.weight), apart ? layer.bias : Tensor(), sequences.batch_sizes, reverse});
}

Results run_layers(const Network& n, const Sequences& sequences, Tensor rows, const Tensor& hidden,
                   const Tensor& cells) {
  std::vector<Tensor> last_hidden, last_cells;
  for (int64_t l = 0; l < n.layers; ++l) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < n.directions(); ++d) {
      const int64_t number = l * n.directions() + d;
      const Layer layer = layer_of(n, number, rows.size(1), hidden.size(2));
      const Tensor cell = cells.defined() ? cells.select(0, number) : Tensor();
      const Made made = run_layer(n, layer, sequences, rows, hidden.select(0, number), cell, d == 1);
      outputs.push_back(sequences.rows_of(made.output));
      last_hidden.push_back(made.hidden);
      last_cells.push_back(made.cell);
    }
    rows = outputs.size() == 1 ? outputs[0] : at::cat(outputs, 1);
    if (n.dropout != 0 && n.train && l + 1 < n.layers) rows = at::dropout(rows, n.dropout, true);
  }
  return {rows, at::stack(last_hidden), cells.defined() ? at::stack(last_cells) : Tensor()};
}

void check(const Network& n, const Sequences& sequences, at::ScalarType type, const Tensor& hidden,
           const Tensor& cells) {
  const auto wanted = static_cast<size_t>(n.layers * n.directions() * (n.has_biases ? 4 : 2));
  if (n.params.size() != wanted) n.fail(wanted, " tensors in 'params', found ", n.params.size());
  if (n.layers < 1 || sequences.steps < 1)
    n.fail("at least one layer and one step, found ", n.layers, " and ", sequences.steps);
  for (const Tensor& state : {hidden, cells}) {
    if (state.defined() && (state.dim() != 3 || state.size(0) != n.layers * n.directions() ||
                            state.size(1) != sequences.batch || !state.sizes().equals(hidden.sizes())))
      n.fail("'hx' of shape [", n.layers * n.directions(), ", ", sequences.batch, ", hidden size], found ",
             state.sizes());
    if (state.defined() && state.scalar_type() != type && !at::autocast::is_autocast_enabled(at::kXLA))
      n.fail("'hx' of ", type, " as the input, found ", state.scalar_type());
  }
}

}  // namespace

Results run_steps(const Network& n, const Tensor& input, const Tensor& batch_sizes, const Tensor& hidden,
                  const Tensor& cells) {
  if (input.dim() != 3) n.fail("'input' of 3 dimensions, found ", input.sizes());
  const Sequences sequences{input.size(0), input.size(1), batch_sizes, {}, {}};
  check(n, sequences, input.scalar_type(), hidden, cells);
  Results results = run_layers(n, sequences, input.reshape({-1, input.size(2)}), hidden, cells);
  results.rows = results.rows.view({sequences.steps, sequences.batch, results.rows.size(1)});
  return results;
}

namespace {

Results run_input(const Network& n, const Tensor& input, const Tensor& hidden, const Tensor& cells,
                  bool batch_first) {
  if (!batch_first || input.dim() != 3) return run_steps(n, input, {}, hidden, cells);
  Results results = run_steps(n, input.transpose(0, 1), {}, hidden, cells);
  results.rows = results.rows.transpose(0, 1);
  return results;
}

// Maps the rows of packed sequences to their places among all steps of all sequences. Places after a
// sequence's end refer to an arbitrary row, and the loop skips them.
Sequences packed(const Network& n, const Tensor& data, const Tensor& batch_sizes) {
  if (!batch_sizes.is_cpu() || batch_sizes.dim() != 1 || batch_sizes.scalar_type() != at::kLong ||
      batch_sizes.numel() == 0 || data.dim() != 2)
    n.fail("'data' of 2 dimensions and 'batch_sizes' of one, int64 and on the CPU, found ", data.sizes(),
           " and ", batch_sizes.toString(), batch_sizes.sizes());
  const Tensor sizes = batch_sizes.contiguous();
  const auto* size = sizes.const_data_ptr<int64_t>();
  Sequences made{sizes.numel(), size[0], {}, {}, {}};
  std::vector<int64_t> to_all(static_cast<size_t>(made.steps * made.batch)), from_all;
  for (int64_t t = 0; t < made.steps; ++t) {
    if (size[t] < 1 || (t > 0 && size[t] > size[t - 1]))
      n.fail("'batch_sizes' above 0 that never grow, found ", size[t], " at step ", t);
    for (int64_t i = 0; i < size[t]; ++i) {
      to_all[static_cast<size_t>(t * made.batch + i)] = static_cast<int64_t>(from_all.size());
      from_all.push_back(t * made.batch + i);
    }
  }
  if (data.size(0) != static_cast<int64_t>(from_all.size()))
    n.fail("the number of rows of 'data' that 'batch_sizes' count, ", from_all.size(), ", found ",
           data.size(0));
  made.batch_sizes = sizes.to(data.device());
  made.to_all = at::tensor(to_all, at::kLong).to(data.device());
  made.from_all = at::tensor(from_all, at::kLong).to(data.device());
  return made;
}

Results run_packed(const Network& n, const Tensor& data, const Tensor& batch_sizes, const Tensor& hidden,
                   const Tensor& cells) {
  const Sequences sequences = packed(n, data, batch_sizes);
  check(n, sequences, data.scalar_type(), hidden, cells);
  return run_layers(n, sequences, data, hidden, cells);
}

void check_states(const char* op, at::TensorList hx) {
  if (hx.size() != 2)
    throw_error(
        Code::kInvalidArgument,
        base::str(op, ": expected two tensors in 'hx', a hidden state and a cell, found ", hx.size()));
}

// Returns whether an LSTM has projections. It then has states of two sizes, and LibTorch splits it into
// operations.
bool has_projections(at::TensorList hx) { return !hx[0].sizes().equals(hx[1].sizes()); }

Three lstm(const Tensor& input, at::TensorList hx, at::TensorList params, bool has_biases, int64_t layers,
           double dropout, bool train, bool bidirectional, bool batch_first) {
  constexpr const char* kOp = "aten::lstm";
  check_states(kOp, hx);
  if (has_projections(hx))
    return at::native::lstm(input, hx, params, has_biases, layers, dropout, train, bidirectional,
                            batch_first);
  const Results r = run_input({kOp, Cell::kLstm, params, has_biases, layers, dropout, train, bidirectional},
                              input, hx[0], hx[1], batch_first);
  return {r.rows, r.hidden, r.cells};
}

Three packed_lstm(const Tensor& data, const Tensor& batch_sizes, at::TensorList hx, at::TensorList params,
                  bool has_biases, int64_t layers, double dropout, bool train, bool bidirectional) {
  constexpr const char* kOp = "aten::lstm";
  check_states(kOp, hx);
  if (has_projections(hx))
    return at::native::lstm(data, batch_sizes, hx, params, has_biases, layers, dropout, train, bidirectional);
  const Results r = run_packed({kOp, Cell::kLstm, params, has_biases, layers, dropout, train, bidirectional},
                               data, batch_sizes, hx[0], hx[1]);
  return {r.rows, r.hidden, r.cells};
}

// The names by Cell, for gru, rnn_tanh and rnn_relu.
constexpr const char* kNames[] = {"aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"};

template <Cell kind>
Two rnn(const Tensor& input, const Tensor& hx, at::TensorList params, bool has_biases, int64_t layers,
        double dropout, bool train, bool bidirectional, bool batch_first) {
  const char* op = kNames[static_cast<size_t>(kind)];
  const Results r = run_input({op, kind, params, has_biases, layers, dropout, train, bidirectional}, input,
                              hx, {}, batch_first);
  return {r.rows, r.hidden};
}

template <Cell kind>
Two packed_rnn(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, at::TensorList params,
               bool has_biases, int64_t layers, double dropout, bool train, bool bidirectional) {
  const char* op = kNames[static_cast<size_t>(kind)];
  const Results r = run_packed({op, kind, params, has_biases, layers, dropout, train, bidirectional}, data,
                               batch_sizes, hx, {});
  return {r.rows, r.hidden};
}

}  // namespace

void register_recurrent() {
  static auto* own = new torch::Library(torch::Library::FRAGMENT, "sluice", std::nullopt, __FILE__, __LINE__);
  for (const char* schema : kSchemas) own->def(schema);
  // Registers for autograd's key too, before LibTorch splits them into operations.
  for (const auto key : {c10::DispatchKey::XLA, c10::DispatchKey::AutogradXLA}) {
    auto* library = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    library->impl("lstm.input", TORCH_FN(lstm));
    library->impl("lstm.data", TORCH_FN(packed_lstm));
    library->impl("gru.input", TORCH_FN(rnn<Cell::kGru>));
    library->impl("gru.data", TORCH_FN(packed_rnn<Cell::kGru>));
    library->impl("rnn_tanh.input", TORCH_FN(rnn<Cell::kTanh>));
    library->impl("rnn_tanh.data", TORCH_FN(packed_rnn<Cell::kTanh>));
    library->impl("rnn_relu.input", TORCH_FN(rnn<Cell::kRelu>));
    library->impl("rnn_relu.data", TORCH_FN(packed_rnn<Cell::kRelu>));
  }
}

}  // namespace sluice::device
