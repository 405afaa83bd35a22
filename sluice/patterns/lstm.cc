// Matches the composites lstm and lstm_gradient of f32, for which the target has a kernel.
// Makes "sluice_lstm" and "sluice_lstm_gradient" (stablehlo/kernel_library.h), each of which runs all steps.
#include "sluice/patterns/calls.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {
namespace {

namespace composites = stablehlo::composites;

// With how many sequences have each step behind them, if not all have all; kernels read f32 alone, which has
// all numbers of sequences that fit into memory.
Values with_sizes(Builder& b, Values operands, Value sizes) {
  if (sizes) operands.push_back(b.convert(sizes, DType::kF32));
  return operands;
}

// Of what each step made, the last one's.
Value last_step(Builder& b, Value x, bool reverse) {
  const int64_t last = reverse ? 0 : x.dim(0) - 1;
  return b.reshape(b.slice_dim(x, 0, last, last + 1), {x.dim(1), x.dim(2)});
}

Values lstm_call(Rewriter& r, const Operation& op) {
  const Values operands(op.operands.begin(), op.operands.begin() + 4);
  if (!all_f32(operands)) return {};
  const Value gates = operands[0], hidden = operands[2];
  const Type of_steps{DType::kF32, {gates.dim(0), gates.dim(1), hidden.dim(1)}};
  const int64_t reverse = op.number("reverse");
  const Values made = call_on_rows(r.b, stablehlo::kLstmTarget, with_sizes(r.b, operands, op.operands[4]),
                                   {gates.type(), of_steps, of_steps}, {{"reverse", reverse}},
                                   /*in_place=*/1);
  Values results = {made[1], last_step(r.b, made[1], reverse != 0), last_step(r.b, made[2], reverse != 0)};
  if (op.results.size() > results.size()) results.insert(results.end(), {made[2], made[0]});
  return results;
}

Values lstm_gradient_call(Rewriter& r, const Operation& op) {
  Values operands(op.operands.begin(), op.operands.begin() + 7);
  if (!all_f32(operands)) return {};
  Value& of_output = operands[4];
  if (!of_output) of_output = r.b.splat(0, operands[3].type());
  const Type state = operands[2].type();
  return call_on_rows(r.b, stablehlo::kLstmGradientTarget, with_sizes(r.b, operands, op.operands[7]),
                      {operands[0].type(), state, state}, {{"reverse", op.number("reverse")}},
                      /*in_place=*/1);
}

}  // namespace

void lstm(Rewriter& r, const KernelLibrary& kernels) {
  if (kernels.has_lstm())
    r.each([&](const Operation& op) -> Values {
      if (op.is_composite(composites::kLstm)) return lstm_call(r, op);
      if (op.is_composite(composites::kLstmGradient)) return lstm_gradient_call(r, op);
      return {};
    });
  // The products in the loops that are left to the compiler have kernels of their own.
  r.open(composites::kLstm);
  r.open(composites::kLstmGradient);
}

}  // namespace sluice::patterns
