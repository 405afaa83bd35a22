// For tests: several rows in one program, and queries of the calls in its text.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sluice/patterns/testing/library.h"

namespace sluice::patterns {

// Several rows, one after the other in one program, on tensors of f32.
class Rows {
 public:
  // Adds parameters in the given order (the compiler chooses the order of function arguments).
  Values parameters(const std::vector<Dims>& all) {
    Values made;
    for (const Dims& dims : all) made.push_back(parameter(dims));
    return made;
  }
  Value parameter(const Dims& dims) { return b.parameter({kF32, dims}); }

  Values normalize(Value x, bool affine = true) {
    const Value of_channels = parameter({x.dim(1)});
    return emit("aten::native_batch_norm", {{"input", tensor(x)},
                                            {"weight", affine ? tensor(of_channels) : Arg{}},
                                            {"bias", affine ? tensor(of_channels) : Arg{}},
                                            {"running_mean", Arg{}},
                                            {"running_var", Arg{}},
                                            {"training", flag(true)},
                                            {"momentum", number(0.1)},
                                            {"eps", number(1e-5)}});
  }
  Value mm(Value x, Value y) { return emit("aten::mm", {{"self", tensor(x)}, {"mat2", tensor(y)}})[0]; }
  Value gelu(Value x) {
    Arg none;
    none.kind = Arg::Kind::kText;
    none.text = "none";
    return emit("aten::gelu", {{"self", tensor(x)}, {"approximate", none}})[0];
  }
  Value relu(Value x) { return emit("aten::relu", {{"self", tensor(x)}})[0]; }
  Value add(Value a, Value b, double alpha = 1) {
    return emit("aten::add.Tensor", {{"self", tensor(a)}, {"other", tensor(b)}, {"alpha", number(alpha)}})[0];
  }
  Value relu_gradient(Value g, Value y) {
    return emit("aten::threshold_backward",
                {{"grad_output", tensor(g)}, {"self", tensor(y)}, {"threshold", number(0)}})[0];
  }
  Values normalization_gradient(Value g, Value x, const Values& normalized) {
    return emit("aten::native_batch_norm_backward", {{"grad_out", tensor(g)},
                                                     {"input", tensor(x)},
                                                     {"weight", tensor(parameter({x.dim(1)}))},
                                                     {"running_mean", Arg{}},
                                                     {"running_var", Arg{}},
                                                     {"save_mean", tensor(normalized[1])},
                                                     {"save_invstd", tensor(normalized[2])},
                                                     {"train", flag(true)},
                                                     {"eps", number(1e-5)},
                                                     {"output_mask", ints({1, 1, 1})}});
  }

  Values attention(Value x) {
    return emit("aten::_scaled_dot_product_flash_attention_for_cpu", {{"query", tensor(x)},
                                                                      {"key", tensor(x)},
                                                                      {"value", tensor(x)},
                                                                      {"dropout_p", number(0)},
                                                                      {"is_causal", flag(false)},
                                                                      {"attn_mask", Arg{}},
                                                                      {"scale", Arg{}}});
  }
  Values attention_with_dropout(Value x) {
    return emit("sluice::attention_with_dropout", {{"query", tensor(x)},
                                                   {"key", tensor(x)},
                                                   {"value", tensor(x)},
                                                   {"attn_mask", Arg{}},
                                                   {"dropout_p", number(0.1)},
                                                   {"is_causal", flag(true)},
                                                   {"scale", Arg{}}});
  }
  Value convolution(Value x, Value w) {
    return emit("aten::convolution_overrideable", {{"input", tensor(x)},
                                                   {"weight", tensor(w)},
                                                   {"bias", Arg{}},
                                                   {"stride", ints({1, 1})},
                                                   {"padding", ints({1, 1})},
                                                   {"dilation", ints({1, 1})},
                                                   {"transposed", flag(false)},
                                                   {"output_padding", ints({0, 0})},
                                                   {"groups", integer(1)}})[0];
  }
  Value max_pooling(Value x) {
    return emit("aten::max_pool2d_with_indices", {{"self", tensor(x)},
                                                  {"kernel_size", ints({2, 2})},
                                                  {"stride", ints({2, 2})},
                                                  {"padding", ints({0, 0})},
                                                  {"dilation", ints({1, 1})},
                                                  {"ceil_mode", flag(false)}})[0];
  }
  Values layer_norm(Value x) {
    return emit("aten::native_layer_norm", {{"input", tensor(x)},
                                            {"normalized_shape", ints({x.dims().back()})},
                                            {"weight", tensor(parameter({x.dims().back()}))},
                                            {"bias", Arg{}},
                                            {"eps", number(1e-5)}});
  }
  // The steps of layers whose hidden states are [steps, batch, hidden], and their gradients if only the first
  // result was read.
  Values lstm(const Dims& states) { return lstm(parameter({states[0], states[1], 4 * states[2]})); }
  Values lstm(Value gates) {
    const Dims states = {gates.dim(0), gates.dim(1), gates.dim(2) / 4}, state = {states[1], states[2]};
    const Value weight = parameter({4 * states[2], states[2]});
    const Value hidden = parameter(state), cell = parameter(state);
    Values made = emit("sluice::lstm_steps", {{"gates", tensor(gates)},
                                              {"hidden", tensor(hidden)},
                                              {"cell", tensor(cell)},
                                              {"weight", tensor(weight)},
                                              {"batch_sizes", Arg{}},
                                              {"reverse", flag(false)},
                                              {"for_gradient", flag(true)}});
    const Values gradients = emit("sluice::lstm_steps_backward", {{"grad_output", tensor(parameter(states))},
                                                                  {"grad_hidden", Arg{}},
                                                                  {"grad_cell", Arg{}},
                                                                  {"activations", tensor(made[4])},
                                                                  {"cells", tensor(made[3])},
                                                                  {"cell", tensor(cell)},
                                                                  {"weight", tensor(weight)},
                                                                  {"batch_sizes", Arg{}},
                                                                  {"reverse", flag(false)}});
    made.resize(3);
    made.insert(made.end(), gradients.begin(), gradients.end());
    return made;
  }
  Values gru(const Dims& states) {
    const Value gates = parameter({states[0], states[1], 3 * states[2]}),
                weight = parameter({3 * states[2], states[2]}), hidden = parameter({states[1], states[2]});
    Values made = emit("sluice::gru_steps", {{"gates", tensor(gates)},
                                             {"hidden", tensor(hidden)},
                                             {"weight", tensor(weight)},
                                             {"bias", Arg{}},
                                             {"batch_sizes", Arg{}},
                                             {"reverse", flag(false)},
                                             {"for_gradient", flag(true)}});
    const Values gradients = emit("sluice::gru_steps_backward", {{"grad_output", tensor(parameter(states))},
                                                                 {"grad_hidden", Arg{}},
                                                                 {"activations", tensor(made[2])},
                                                                 {"output", tensor(made[0])},
                                                                 {"hidden", tensor(hidden)},
                                                                 {"weight", tensor(weight)},
                                                                 {"batch_sizes", Arg{}},
                                                                 {"reverse", flag(false)}});
    made.resize(2);
    made.insert(made.end(), gradients.begin(), gradients.end());
    return made;
  }
  // The steps of an RNN with the number of sequences at each step.
  Values rnn(const Dims& states) {
    const Value weight = parameter({states[2], states[2]});
    const Value sizes = b.parameter({kS64, {states[0]}});
    Values made = emit("sluice::rnn_steps", {{"gates", tensor(parameter(states))},
                                             {"hidden", tensor(parameter({states[1], states[2]}))},
                                             {"weight", tensor(weight)},
                                             {"batch_sizes", tensor(sizes)},
                                             {"reverse", flag(true)},
                                             {"relu", flag(true)}});
    const Values gradients = emit("sluice::rnn_steps_backward", {{"grad_output", tensor(parameter(states))},
                                                                 {"grad_hidden", Arg{}},
                                                                 {"output", tensor(made[0])},
                                                                 {"weight", tensor(weight)},
                                                                 {"batch_sizes", tensor(sizes)},
                                                                 {"reverse", flag(true)},
                                                                 {"relu", flag(true)}});
    made.insert(made.end(), gradients.begin(), gradients.end());
    return made;
  }
  // Reads x, or adds updates to it, at the places `index` along dimension 1.
  Value gather(Value x, Value index) {
    return emit("aten::gather", {{"self", tensor(x)}, {"dim", integer(1)}, {"index", tensor(index)}})[0];
  }
  Value scatter_add(Value x, Value index, Value updates) {
    return emit(
        "aten::scatter_add",
        {{"self", tensor(x)}, {"dim", integer(1)}, {"index", tensor(index)}, {"src", tensor(updates)}})[0];
  }
  Value softmax(Value x) {
    return emit("aten::_softmax",
                {{"self", tensor(x)}, {"dim", integer(-1)}, {"half_to_float", flag(false)}})[0];
  }
  Value log_softmax(Value x) {
    return emit("aten::_log_softmax",
                {{"self", tensor(x)}, {"dim", integer(-1)}, {"half_to_float", flag(false)}})[0];
  }
  // The gradient of the softmax for a gradient of its result, which is a parameter.
  Value softmax_gradient(Value grad) {
    return emit("aten::_softmax_backward_data", {{"grad_output", tensor(grad)},
                                                 {"output", tensor(parameter(grad.dims()))},
                                                 {"dim", integer(-1)},
                                                 {"input_dtype", Arg{}}})[0];
  }

  // The loss of each row, from the logarithms of the scores' softmax [N, C].
  Value negative_log_likelihood(Value logarithms) {
    const Type labels{kS64, {logarithms.dim(0)}};
    return emit("aten::nll_loss_forward", {{"self", tensor(logarithms)},
                                           {"target", tensor(b.parameter(labels))},
                                           {"weight", Arg{}},
                                           {"reduction", integer(0)},
                                           {"ignore_index", integer(-100)}})[0];
  }
  // The gradient of cross-entropy for scores [N, C], from the logarithms of their softmax.
  Value cross_entropy_gradient(Value logarithms) {
    const Type number_type{kF32, {}}, labels{kS64, {logarithms.dim(0)}};
    const Value g = emit("aten::nll_loss_backward", {{"grad_output", tensor(b.parameter(number_type))},
                                                     {"self", tensor(logarithms)},
                                                     {"target", tensor(b.parameter(labels))},
                                                     {"weight", Arg{}},
                                                     {"reduction", integer(1)},
                                                     {"ignore_index", integer(-100)},
                                                     {"total_weight", tensor(b.parameter(number_type))}})[0];
    return log_softmax_gradient(g, logarithms);
  }
  Value log_softmax_gradient(Value g, Value logarithms) {
    Arg dtype;
    dtype.kind = Arg::Kind::kDType;
    dtype.dtype = kF32;
    return emit("aten::_log_softmax_backward_data", {{"grad_output", tensor(g)},
                                                     {"output", tensor(logarithms)},
                                                     {"dim", integer(1)},
                                                     {"input_dtype", dtype}})[0];
  }

  // Returns the program for a target that has all kernels.
  std::string finish(const Values& results) { return rewritten(b, results, library_); }

  Builder b;

 private:
  static Arg tensor(Value value) {
    Arg arg;
    arg.kind = Arg::Kind::kTensor;
    arg.value = value;
    return arg;
  }
  static Arg flag(bool value) {
    Arg arg;
    arg.kind = Arg::Kind::kBool;
    arg.ints = {value};
    return arg;
  }
  static Arg integer(int64_t value) {
    Arg arg;
    arg.kind = Arg::Kind::kInt;
    arg.ints = {value};
    return arg;
  }
  static Arg ints(Dims values) {
    Arg arg;
    arg.kind = Arg::Kind::kInts;
    arg.ints = std::move(values);
    return arg;
  }
  static Arg number(double value) {
    Arg arg;
    arg.kind = Arg::Kind::kScalar;
    arg.constant = true;
    arg.number = value;
    return arg;
  }
  Values emit(std::string_view op, const std::vector<std::pair<std::string, Arg>>& arguments) {
    std::vector<std::string> names;
    std::vector<Arg> args;
    for (const auto& [name, arg] : arguments) {
      names.push_back(name);
      args.push_back(arg);
    }
    Emit e(b, op, names, args, slots_);
    return find_row(op)->emit(e);
  }

  const TestLibrary library_{true};
  TestSlots slots_{b};
};

// Returns the line with the call of this kernel; "" without such a call.
inline std::string line_of(const std::string& text, std::string_view target) {
  const size_t found = text.find("call_target_name = \"" + std::string(target) + "\"");
  if (found == std::string::npos) return "";
  const size_t begin = text.rfind('\n', found) + 1;
  return text.substr(begin, text.find('\n', found) - begin);
}

inline size_t operands_of(const std::string& line) {
  const size_t open = line.find('('), close = line.find(')', open);
  return line.empty() ? 0
                      : 1 + static_cast<size_t>(std::count(line.begin() + static_cast<int64_t>(open),
                                                           line.begin() + static_cast<int64_t>(close), ','));
}

}  // namespace sluice::patterns
