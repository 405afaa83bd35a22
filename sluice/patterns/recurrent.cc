// Matches the composites lstm, gru and rnn of f32, and their gradients, for which the target has kernels.
// Makes "sluice_lstm", "sluice_gru" and "sluice_rnn", each also with "_gradient"
// (stablehlo/kernel_library.h), which run all steps.
#include "sluice/patterns/calls.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {
namespace {

namespace composites = stablehlo::composites;

// Returns a call's operands: the composite's, with zeros of these dims for an operand that may be missing;
// empty if not all are f32. The composite's last operand is the number of sequences at each step. The call
// gets it only if some sequences lack steps, and as f32, the only type that kernels read; it represents every
// number that fits into memory.
Values call_operands(Builder& b, const Operation& op, size_t may_miss = 0, const Dims& dims = {}) {
  Values operands(op.operands.begin(), op.operands.end() - 1);
  if (!all_f32(operands)) return {};
  if (!operands[may_miss]) operands[may_miss] = b.splat(0, Type{DType::kF32, dims});
  if (const Value sizes = op.operands.back()) operands.push_back(b.convert(sizes, DType::kF32));
  return operands;
}

// Returns the last step's part of a result of all steps.
Value last_step(Builder& b, Value x, const Operation& op) {
  const int64_t last = op.number("reverse") != 0 ? 0 : x.dim(0) - 1;
  return b.reshape(b.slice_dim(x, 0, last, last + 1), {x.dim(1), x.dim(2)});
}

// Returns the type [steps, batch, parts * hidden], with the steps and the batch of x.
Type of_steps(Value x, Value weight, int64_t parts) {
  return {DType::kF32, {x.dim(0), x.dim(1), parts * weight.dim(1)}};
}

Values lstm(const Rewriter& r, const Operation& op) {
  const Values operands = call_operands(r.b, op);
  if (operands.empty()) return {};
  const Type states = of_steps(operands[0], operands[1], 1);
  const Values made = call_on_rows_in_place(r, stablehlo::kLstmTarget, operands, {states, states},
                                            {{"reverse", op.number("reverse")}});
  Values results = {made[1], last_step(r.b, made[1], op), last_step(r.b, made[2], op)};
  if (op.results.size() > results.size()) results.insert(results.end(), {made[2], made[0]});
  return results;
}

Values lstm_gradient(const Rewriter& r, const Operation& op) {
  const Values operands = call_operands(r.b, op, 4, op.operands[3].dims());
  if (operands.empty()) return {};
  const Type state = operands[2].type();
  return call_on_rows_in_place(r, stablehlo::kLstmGradientTarget, operands, {state, state},
                               {{"reverse", op.number("reverse")}});
}

Values gru(const Rewriter& r, const Operation& op) {
  Builder& b = r.b;
  const Values operands = call_operands(b, op, 3, {op.operands[1].dim(0)});
  if (operands.empty()) return {};
  const Value gates = operands[0], weight = operands[1];
  const Values made = call_on_rows(b, stablehlo::kGruTarget, operands,
                                   {of_steps(gates, weight, 4), of_steps(gates, weight, 1)},
                                   {{"reverse", op.number("reverse")}});
  Values results = {made[1], last_step(b, made[1], op)};
  if (op.results.size() > results.size()) results.push_back(made[0]);
  return results;
}

Values gru_gradient(const Rewriter& r, const Operation& op) {
  Builder& b = r.b;
  const Values operands = call_operands(b, op, 4, op.operands[3].dims());
  if (operands.empty()) return {};
  const Type gates = of_steps(operands[0], operands[1], 3);
  return call_on_rows(b, stablehlo::kGruGradientTarget, operands, {gates, gates, operands[2].type()},
                      {{"reverse", op.number("reverse")}});
}

CallAttributes attributes_of_rnn(const Operation& op) {
  return {{"reverse", op.number("reverse")}, {"relu", op.number("relu")}};
}

Values rnn(const Rewriter& r, const Operation& op) {
  const Values operands = call_operands(r.b, op);
  if (operands.empty()) return {};
  const Value output =
      call_on_rows_in_place(r, stablehlo::kRnnTarget, operands, {}, attributes_of_rnn(op))[0];
  return {output, last_step(r.b, output, op)};
}

Values rnn_gradient(const Rewriter& r, const Operation& op) {
  Builder& b = r.b;
  const Values operands = call_operands(b, op, 2, op.operands[0].dims());
  if (operands.empty()) return {};
  return call_on_rows(b, stablehlo::kRnnGradientTarget, operands, {operands[0].type(), operands[3].type()},
                      attributes_of_rnn(op));
}

struct Layer {
  std::string_view composite;
  Values (*call)(const Rewriter& r, const Operation& op);
};
constexpr Layer kLayers[] = {
    {composites::kLstm, lstm}, {composites::kLstmGradient, lstm_gradient},
    {composites::kGru, gru},   {composites::kGruGradient, gru_gradient},
    {composites::kRnn, rnn},   {composites::kRnnGradient, rnn_gradient},
};

}  // namespace

void recurrent(Rewriter& r, const KernelLibrary& kernels) {
  if (kernels.has_recurrent())
    r.each([&](const Operation& op) -> Values {
      for (const Layer& layer : kLayers)
        if (op.is_composite(layer.composite)) return layer.call(r, op);
      return {};
    });
  // Kernels run the products in the loops that are left to the compiler.
  for (const Layer& layer : kLayers) r.open(layer.composite);
}

}  // namespace sluice::patterns
