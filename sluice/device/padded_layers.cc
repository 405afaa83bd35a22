#include "sluice/device/padded_layers.h"

#include <ATen/ATen.h>
#include <torch/nn/utils/rnn.h>

#include <vector>

#include "sluice/device/operators/recurrent.h"

namespace sluice {
namespace {

using at::Tensor;
using device::Cell;
namespace rnn = torch::nn::utils::rnn;

// A module's states: an LSTM has two, the others one.
using States = std::vector<Tensor>;

struct Run {
  Tensor output;
  States states;
};

void check(const Padded& sequences, const torch::nn::detail::RNNOptionsBase& options) {
  const Tensor &x = sequences.values, &mask = sequences.mask;
  TORCH_CHECK(x.dim() == 3 && x.size(2) == options.input_size(),
              "sluice::forward_padded: expected values [batch, length, ", options.input_size(), "], found ",
              x.sizes());
  TORCH_CHECK(mask.scalar_type() == at::kBool && mask.sizes() == x.sizes().slice(0, 2),
              "sluice::forward_padded: expected a mask of bool ", x.sizes().slice(0, 2), ", found ",
              mask.scalar_type(), " ", mask.sizes());
  TORCH_CHECK(mask.device() == x.device(), "sluice::forward_padded: the values are on ", x.device(),
              " and the mask is on ", mask.device(), ": move both to one device");
  TORCH_CHECK(options.proj_size() == 0,
              "sluice::forward_padded: expected a module without proj_size, found proj_size ",
              options.proj_size());
}

// Returns the states to start with: the given ones, or zeros.
States first_states(const Padded& sequences, const torch::nn::detail::RNNOptionsBase& options, size_t count,
                    const States& given) {
  if (!given.empty()) return given;
  const int64_t layers = options.num_layers() * (options.bidirectional() ? 2 : 1);
  const Tensor zeros =
      at::zeros({layers, sequences.values.size(0), options.hidden_size()}, sequences.values.options());
  return States(count, zeros);
}

// Runs sequences that are sorted by length, the longest first, and restores their order.
template <typename Module>
Run run_on_device(Module& module, Cell kind, const char* op, const Padded& sequences, const States& first) {
  const auto& options = module->options_base;
  const Tensor mask = sequences.mask;
  const Tensor order = mask.sum(1).argsort(/*stable=*/true, 0, /*descending=*/true);
  const Tensor back = order.argsort();
  const Tensor present = mask.unsqueeze(2);
  const Tensor x =
      sequences.values.masked_fill(present.logical_not(), 0).index_select(0, order).transpose(0, 1);
  const std::vector<Tensor> weights = module->all_weights();
  const device::Network network{op,
                                kind,
                                weights,
                                options.bias(),
                                options.num_layers(),
                                options.dropout(),
                                module->is_training(),
                                options.bidirectional()};
  const device::Results made =
      device::run_steps(network, x, mask.sum(0), first[0].index_select(1, order),
                        first.size() > 1 ? first[1].index_select(1, order) : Tensor());
  Run run;
  run.output = made.rows.transpose(0, 1).index_select(0, back).masked_fill(present.logical_not(), 0);
  run.states.push_back(made.hidden.index_select(1, back));
  if (first.size() > 1) run.states.push_back(made.cells.index_select(1, back));
  return run;
}

States states_of(const Tensor& state) { return {state}; }
States states_of(const std::tuple<Tensor, Tensor>& states) {
  return {std::get<0>(states), std::get<1>(states)};
}

// Returns what a module takes as its state.
Tensor argument(const torch::nn::GRUImpl&, const States& states) { return states[0]; }
Tensor argument(const torch::nn::RNNImpl&, const States& states) { return states[0]; }
std::optional<std::tuple<Tensor, Tensor>> argument(const torch::nn::LSTMImpl&, const States& states) {
  return std::make_tuple(states[0], states[1]);
}

// Runs packed sequences by LibTorch. It packs no sequence of length 0: one step is run instead and left out.
template <typename Module>
Run run_packed(Module& module, const Padded& sequences, const States& first) {
  const Tensor lengths = sequences.mask.sum(1).cpu();
  const auto packed = rnn::pack_padded_sequence(sequences.values, lengths.clamp_min(1), /*batch_first=*/true,
                                                /*enforce_sorted=*/false);
  const auto [output, states] = module->forward_with_packed_input(packed, argument(*module, first));
  const Tensor all =
      std::get<0>(rnn::pad_packed_sequence(output, /*batch_first=*/true, 0, sequences.values.size(1)));
  Run run;
  run.output = all.masked_fill(sequences.mask.logical_not().unsqueeze(2), 0);
  const Tensor empty = lengths.eq(0).to(all.device()).unsqueeze(1);
  const States last = states_of(states);
  for (size_t i = 0; i < last.size(); ++i) run.states.push_back(at::where(empty, first[i], last[i]));
  return run;
}

template <typename Module>
Run run(Module& module, Cell kind, const char* op, const Padded& sequences, const States& given) {
  const auto& options = module->options_base;
  check(sequences, options);
  const States first = first_states(sequences, options, kind == Cell::kLstm ? 2 : 1, given);
  return sequences.values.device().is_xla() ? run_on_device(module, kind, op, sequences, first)
                                            : run_packed(module, sequences, first);
}

}  // namespace

std::tuple<Tensor, std::tuple<Tensor, Tensor>> forward_padded(
    torch::nn::LSTM module, const Padded& sequences, const std::optional<std::tuple<Tensor, Tensor>>& state) {
  const States given = state ? states_of(*state) : States();
  const Run made = run(module, Cell::kLstm, "sluice::forward_padded of an LSTM", sequences, given);
  return {made.output, {made.states[0], made.states[1]}};
}

std::tuple<Tensor, Tensor> forward_padded(torch::nn::GRU module, const Padded& sequences,
                                          const std::optional<Tensor>& state) {
  const States given = state ? states_of(*state) : States();
  const Run made = run(module, Cell::kGru, "sluice::forward_padded of a GRU", sequences, given);
  return {made.output, made.states[0]};
}

std::tuple<Tensor, Tensor> forward_padded(torch::nn::RNN module, const Padded& sequences,
                                          const std::optional<Tensor>& state) {
  const bool relu = std::holds_alternative<torch::enumtype::kReLU>(module->options.nonlinearity());
  const States given = state ? states_of(*state) : States();
  const Run made =
      run(module, relu ? Cell::kRelu : Cell::kTanh, "sluice::forward_padded of an RNN", sequences, given);
  return {made.output, made.states[0]};
}

}  // namespace sluice
