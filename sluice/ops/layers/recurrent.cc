// The steps of recurrent layers. Each sequence is one loop, independent of its length.
//
// The input's part of the gates does not depend on the step before, so it is one product over all steps in
// front of the loop ("gates" here), and the weight's gradient is one product over all steps after it. The
// loop computes only the hidden state's product. A sequence may be read from its end (`reverse`), and the
// sequences of a batch may end early: step t then has the first batch_sizes[t] of them, and the others keep
// their state.
//
// Gates are next to each other in LibTorch's order: i, f, g, o for an LSTM, r, z, n for a GRU. bf16 and f16
// are multiplied directly; everything else, and the state of a cell from step to step, is f32.
#include <functional>
#include <span>
#include <utility>

#include "sluice/base/text/join.h"
#include "sluice/ops/common.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::ops {
namespace {

// The arguments that all recurrent operations have.
struct Steps {
  Value weight;       // [gates * hidden, hidden]
  Value transposed;   // its transpose, if the state is multiplied by it; made once, before the loop
  Value batch_sizes;  // [steps], or empty
  int64_t count = 0, batch = 0, hidden = 0;
  bool reverse = false;
  DType compute = DType::kF32;

  Type whole(int64_t parts, DType dtype) const { return {dtype, {count, batch, parts * hidden}}; }
};

// Reads the arguments. The first dimension of `sequence` is the steps: [steps, batch, parts * hidden].
Steps read(Emit& e, std::string_view sequence, int64_t parts, int64_t gates) {
  const Value x = e.tensor(sequence), weight = e.tensor("weight");
  const bool fit = x.rank() == 3 && weight.rank() == 2 && weight.dim(0) == gates * weight.dim(1) &&
                   x.dim(2) == parts * weight.dim(1) && x.dim(0) >= 1;
  e.check(fit, base::str("expected '", sequence, "' [steps, batch, ", parts, " * hidden] and 'weight' [",
                         gates, " * hidden, hidden], found ", in_words(x), " and ", in_words(weight)));
  e.check(stablehlo::is_float(x.dtype()), base::str("expected a float tensor, found ", in_words(x)));
  Steps s{.weight = weight, .transposed = {}, .batch_sizes = e.tensor_or_empty("batch_sizes")};
  s.count = x.dim(0), s.batch = x.dim(1), s.hidden = weight.dim(1);
  s.reverse = e.boolean("reverse");
  s.compute = compute_type(x.dtype());
  e.check(!s.batch_sizes || s.batch_sizes.dims() == Dims{s.count},
          base::str("expected ", s.count, " 'batch_sizes'"));
  return s;
}

void check_state(Emit& e, const Steps& s, std::string_view name) {
  const Value state = e.tensor(name);
  e.check(state.dims() == Dims{s.batch, s.hidden} && stablehlo::is_float(state.dtype()),
          base::str("expected '", name, "' [", s.batch, ", ", s.hidden, "], found ", in_words(state)));
}

Values starts_at(Builder& b, Value x, Value t) {
  Values starts(static_cast<size_t>(x.rank()), b.splat(0, t.type()));
  starts[0] = t;
  return starts;
}

// Returns x[t].
Value step_of(Builder& b, Value x, Value t) {
  Dims sizes = x.dims();
  sizes[0] = 1;
  return b.reshape(b.dynamic_slice(x, starts_at(b, x, t), sizes), Dims(sizes.begin() + 1, sizes.end()));
}

// Returns x with x[t] = step.
Value with_step(Builder& b, Value x, Value t, Value step) {
  Dims dims = step.dims();
  dims.insert(dims.begin(), 1);
  return b.dynamic_update_slice(x, b.reshape(to(b, step, x.dtype()), dims), starts_at(b, x, t));
}

// The order of the steps in the loop: the order in which the sequence is read, or for the gradient the
// opposite order.
enum class Order { kReading, kGradient };
using Body = std::function<Values(Builder&, Value t, std::span<const Value> carried)>;

Values each_step(Builder& builder, const Steps& s, Order order, const Values& init, const Body& body) {
  const bool from_end = s.reverse != (order == Order::kGradient);
  return repeat(builder, s.count, init, [&](Builder& b, Value k, const Values& carried) {
    return body(b, from_end ? b.subtract(b.splat(s.count - 1, k.type()), k) : k, carried);
  });
}

// Returns x for the sequences of a batch that have step t, else `otherwise`; both [batch, …].
Value where_present(Builder& b, const Steps& s, Value t, Value x, Value otherwise) {
  if (!s.batch_sizes) return x;
  const Type numbers{s.batch_sizes.dtype(), x.dims()};
  const Value present = b.broadcast(step_of(b, s.batch_sizes, t), x.dims());
  return b.select(b.compare(b.iota(numbers, 0), present, Compare::kLt), x, otherwise);
}

// Returns the result of the step that precedes step t, from x, which has each step's result; `initial` at the
// first step.
Value before_step(Builder& b, const Steps& s, Value x, Value initial, Value t) {
  const Value one = b.splat(1, t.type());
  const Value first = b.splat(s.reverse ? s.count - 1 : 0, t.type());
  const Value before = s.reverse ? b.add(t, one) : b.subtract(t, one);
  const Value low = b.splat(0, t.type()), high = b.splat(s.count - 1, t.type());
  const Value there = to(b, step_of(b, x, b.clamp(low, before, high)), s.compute);
  return b.select(b.compare(t, first, Compare::kEq), to(b, initial, s.compute), there);
}

// Returns h weight^T: the state's part of the gates.
Value gates_of(Builder& b, const Steps& s, Value h) {
  return b.dot_general(to(b, h, s.weight.dtype()), s.transposed, {.lhs_contract = {1}, .rhs_contract = {0}},
                       s.compute);
}

// Returns the state's gradient from the gates' gradient.
Value through_weight(Builder& b, const Steps& s, Value of_gates) {
  return b.dot_general(to(b, of_gates, s.weight.dtype()), s.weight,
                       {.lhs_contract = {1}, .rhs_contract = {0}}, s.compute);
}

Value part(Builder& b, const Steps& s, Value x, int64_t i) {
  return b.slice_dim(x, 1, i * s.hidden, (i + 1) * s.hidden);
}

Value joined(Builder& b, const Values& parts) { return b.concatenate(parts, 1); }

// Returns x (1 - y).
Value times_rest(Builder& b, Value x, Value y) { return b.multiply(x, b.subtract(number_like(b, 1, y), y)); }

// Return the gradient through y = sigmoid(x), and through y = tanh(x).
Value through_sigmoid(Builder& b, Value grad, Value y) { return times_rest(b, b.multiply(grad, y), y); }
Value through_tanh(Builder& b, Value grad, Value y) { return times_rest(b, grad, b.multiply(y, y)); }

// Returns a state's gradient after the last step; zeros if nothing read it.
Value gradient_at_end(Emit& e, const Steps& s, std::string_view name) {
  const Value grad = e.tensor_or_empty(name);
  return grad ? to(e.b, grad, s.compute) : zeros(e.b, {s.compute, {s.batch, s.hidden}});
}

// Returns the gradient of the state after step t: the gradient from later steps, and the one of the step's
// result.
Value gradient_at(Builder& b, const Steps& s, Value later, Value grad_output, Value t) {
  return grad_output ? b.add(later, to(b, step_of(b, grad_output, t), s.compute)) : later;
}

// The loop of lstm(). Without `for_gradient` it has only the first three results.
Values lstm_loop(Builder& builder, Steps s, Value gates, Value hidden, Value cell, bool for_gradient) {
  s.transposed = builder.transpose(s.weight, {1, 0});
  Values init = {hidden, to(builder, cell, s.compute), zeros(builder, s.whole(1, hidden.dtype()))};
  if (for_gradient) {
    init.push_back(zeros(builder, s.whole(1, cell.dtype())));
    init.push_back(zeros(builder, s.whole(4, gates.dtype())));
  }
  Values made =
      each_step(builder, s, Order::kReading, init, [&](Builder& b, Value t, std::span<const Value> carried) {
        const Value sum = b.add(to(b, step_of(b, gates, t), s.compute), gates_of(b, s, carried[0]));
        const Value i = b.logistic(part(b, s, sum, 0)), f = b.logistic(part(b, s, sum, 1));
        const Value g = b.tanh(part(b, s, sum, 2)), o = b.logistic(part(b, s, sum, 3));
        const Value next = b.add(b.multiply(f, carried[1]), b.multiply(i, g));
        const Value output = to(b, b.multiply(o, b.tanh(next)), hidden.dtype());
        const Value h = where_present(b, s, t, output, carried[0]);
        const Value c = where_present(b, s, t, next, carried[1]);
        Values after = {h, c, with_step(b, carried[2], t, h)};
        if (for_gradient) {
          after.push_back(with_step(b, carried[3], t, c));
          after.push_back(with_step(b, carried[4], t, joined(b, {i, f, g, o})));
        }
        return after;
      });
  Values results = {made[2], made[0], to(builder, made[1], cell.dtype())};
  results.insert(results.end(), made.begin() + 3, made.end());
  return results;
}

// Results: each step's hidden state, the last hidden state and the last cell; for the gradient also each
// step's cell and its gates after their functions.
Values lstm(Emit& e) {
  const Steps s = read(e, "gates", 4, 4);
  check_state(e, s, "hidden");
  check_state(e, s, "cell");
  const Value gates = e.tensor("gates"), hidden = e.tensor("hidden"), cell = e.tensor("cell");
  Values made = e.b.composite(stablehlo::composites::kLstm, {gates, s.weight, hidden, cell, s.batch_sizes},
                              {{"reverse", int64_t{s.reverse}}}, [&] {
                                return lstm_loop(e.b, s, gates, hidden, cell, e.boolean("for_gradient"));
                              });
  made.resize(5);
  return made;
}

// The gradients that reach an LSTM's steps; the gradient of each step's hidden state may be empty.
struct LstmGradient {
  Value output, hidden, cell;
};

// The loop of lstm_backward().
Values lstm_gradient_loop(Builder& builder, const Steps& s, Value activations, Value cells, Value cell,
                          const LstmGradient& of) {
  const Values init = {of.hidden, of.cell, zeros(builder, activations.type())};
  const Values made =
      each_step(builder, s, Order::kGradient, init, [&](Builder& b, Value t, std::span<const Value> carried) {
        const Value all = to(b, step_of(b, activations, t), s.compute);
        const Value i = part(b, s, all, 0), f = part(b, s, all, 1);
        const Value g = part(b, s, all, 2), o = part(b, s, all, 3);
        const Value c = b.tanh(to(b, step_of(b, cells, t), s.compute));
        const Value of_h = gradient_at(b, s, carried[0], of.output, t);
        const Value of_c = b.add(carried[1], through_tanh(b, b.multiply(of_h, o), c));
        const Value of_f = b.multiply(of_c, before_step(b, s, cells, cell, t));
        const Value of_gates =
            joined(b, {through_sigmoid(b, b.multiply(of_c, g), i), through_sigmoid(b, of_f, f),
                       through_tanh(b, b.multiply(of_c, i), g), through_sigmoid(b, b.multiply(of_h, c), o)});
        const Value kept = where_present(b, s, t, of_gates, zeros(b, of_gates.type()));
        return Values{where_present(b, s, t, through_weight(b, s, of_gates), of_h),
                      where_present(b, s, t, b.multiply(of_c, f), carried[1]),
                      with_step(b, carried[2], t, kept)};
      });
  return {made[2], to(builder, made[0], cell.dtype()), to(builder, made[1], cell.dtype())};
}

// Results: the gradients of the gates, the first hidden state and the first cell.
Values lstm_backward(Emit& e) {
  const Steps s = read(e, "activations", 4, 4);
  const Value activations = e.tensor("activations"), cells = e.tensor("cells"), cell = e.tensor("cell");
  const LstmGradient of{e.tensor_or_empty("grad_output"), gradient_at_end(e, s, "grad_hidden"),
                        gradient_at_end(e, s, "grad_cell")};
  return e.b.composite(stablehlo::composites::kLstmGradient,
                       {activations, s.weight, cell, cells, of.output, of.hidden, of.cell, s.batch_sizes},
                       {{"reverse", int64_t{s.reverse}}},
                       [&] { return lstm_gradient_loop(e.b, s, activations, cells, cell, of); });
}

// The loop of gru(). Without `for_gradient` it has only the first two results.
Values gru_loop(Builder& builder, Steps s, Value gates, Value hidden, Value bias, bool for_gradient) {
  s.transposed = builder.transpose(s.weight, {1, 0});
  Values init = {hidden, zeros(builder, s.whole(1, hidden.dtype()))};
  if (for_gradient) init.push_back(zeros(builder, s.whole(4, gates.dtype())));
  const Value added =
      bias ? builder.broadcast(to(builder, bias, s.compute), {s.batch, 3 * s.hidden}) : Value();
  Values made =
      each_step(builder, s, Order::kReading, init, [&](Builder& b, Value t, std::span<const Value> carried) {
        const Value of_input = to(b, step_of(b, gates, t), s.compute);
        Value of_state = gates_of(b, s, carried[0]);
        if (added) of_state = b.add(of_state, added);
        const auto sum = [&](int64_t i) { return b.add(part(b, s, of_input, i), part(b, s, of_state, i)); };
        const Value r = b.logistic(sum(0)), z = b.logistic(sum(1)), state = part(b, s, of_state, 2);
        const Value n = b.tanh(b.add(part(b, s, of_input, 2), b.multiply(r, state)));
        const Value h = to(b, carried[0], s.compute);
        const Value next = to(b, b.add(b.multiply(b.subtract(h, n), z), n), hidden.dtype());
        const Value output = where_present(b, s, t, next, carried[0]);
        Values after = {output, with_step(b, carried[1], t, output)};
        if (for_gradient) after.push_back(with_step(b, carried[2], t, joined(b, {r, z, n, state})));
        return after;
      });
  std::swap(made[0], made[1]);
  return made;
}

// Results: each step's hidden state and the last one; for the gradient also each step's r, z, n, and the
// state's part of n before r scales it.
Values gru(Emit& e) {
  const Steps s = read(e, "gates", 3, 3);
  check_state(e, s, "hidden");
  const Value gates = e.tensor("gates"), hidden = e.tensor("hidden"), bias = e.tensor_or_empty("bias");
  e.check(!bias || bias.dims() == Dims{3 * s.hidden}, base::str("expected 'bias' [", 3 * s.hidden, "]"));
  Values made = e.b.composite(stablehlo::composites::kGru, {gates, s.weight, hidden, bias, s.batch_sizes},
                              {{"reverse", int64_t{s.reverse}}}, [&] {
                                return gru_loop(e.b, s, gates, hidden, bias, e.boolean("for_gradient"));
                              });
  made.resize(3);
  return made;
}

// The loop of gru_backward().
Values gru_gradient_loop(Builder& builder, const Steps& s, Value activations, Value hidden, Value output,
                         Value grad_output, Value grad_hidden) {
  const Value none = zeros(builder, s.whole(3, activations.dtype()));
  const Values made =
      each_step(builder, s, Order::kGradient, {grad_hidden, none, none},
                [&](Builder& b, Value t, std::span<const Value> carried) {
                  const Value all = to(b, step_of(b, activations, t), s.compute);
                  const Value r = part(b, s, all, 0), z = part(b, s, all, 1);
                  const Value n = part(b, s, all, 2), state = part(b, s, all, 3);
                  const Value of_h = gradient_at(b, s, carried[0], grad_output, t);
                  const Value of_z = b.multiply(of_h, b.subtract(before_step(b, s, output, hidden, t), n));
                  const Value of_n = through_tanh(b, times_rest(b, of_h, z), n);
                  const Value first = through_sigmoid(b, b.multiply(of_n, state), r);
                  const Value second = through_sigmoid(b, of_z, z);
                  const Value of_state = joined(b, {first, second, b.multiply(of_n, r)});
                  const auto kept = [&](Value x) { return where_present(b, s, t, x, zeros(b, x.type())); };
                  const Value before = b.add(b.multiply(of_h, z), through_weight(b, s, of_state));
                  return Values{where_present(b, s, t, before, of_h),
                                with_step(b, carried[1], t, kept(joined(b, {first, second, of_n}))),
                                with_step(b, carried[2], t, kept(of_state))};
                });
  return {made[1], made[2], to(builder, made[0], hidden.dtype())};
}

// Results: the gradients of the input's part of the gates, of the state's part, and of the first state.
Values gru_backward(Emit& e) {
  const Steps s = read(e, "activations", 4, 3);
  const Value activations = e.tensor("activations"), output = e.tensor("output"), hidden = e.tensor("hidden");
  const Value of_output = e.tensor_or_empty("grad_output"), of_hidden = gradient_at_end(e, s, "grad_hidden");
  return e.b.composite(stablehlo::composites::kGruGradient,
                       {activations, s.weight, hidden, output, of_output, of_hidden, s.batch_sizes},
                       {{"reverse", int64_t{s.reverse}}}, [&] {
                         return gru_gradient_loop(e.b, s, activations, hidden, output, of_output, of_hidden);
                       });
}

// The loop of rnn().
Values rnn_loop(Builder& builder, Steps s, Value gates, Value hidden, bool relu) {
  s.transposed = builder.transpose(s.weight, {1, 0});
  const Values made =
      each_step(builder, s, Order::kReading, {hidden, zeros(builder, s.whole(1, hidden.dtype()))},
                [&](Builder& b, Value t, std::span<const Value> carried) {
                  const Value sum = b.add(to(b, step_of(b, gates, t), s.compute), gates_of(b, s, carried[0]));
                  const Value next = relu ? b.maximum(sum, zeros(b, sum.type())) : b.tanh(sum);
                  const Value h = where_present(b, s, t, to(b, next, hidden.dtype()), carried[0]);
                  return Values{h, with_step(b, carried[1], t, h)};
                });
  return {made[1], made[0]};
}

// h = tanh or relu of the gate. Results: each step's hidden state and the last one.
Values rnn(Emit& e) {
  const Steps s = read(e, "gates", 1, 1);
  check_state(e, s, "hidden");
  const Value gates = e.tensor("gates"), hidden = e.tensor("hidden");
  const bool relu = e.boolean("relu");
  return e.b.composite(stablehlo::composites::kRnn, {gates, s.weight, hidden, s.batch_sizes},
                       {{"reverse", int64_t{s.reverse}}, {"relu", int64_t{relu}}},
                       [&] { return rnn_loop(e.b, s, gates, hidden, relu); });
}

// The loop of rnn_backward().
Values rnn_gradient_loop(Builder& builder, const Steps& s, Value output, Value grad_output, Value grad_hidden,
                         bool relu) {
  const Values init = {grad_hidden, zeros(builder, output.type())};
  const Values made =
      each_step(builder, s, Order::kGradient, init, [&](Builder& b, Value t, std::span<const Value> carried) {
        const Value y = to(b, step_of(b, output, t), s.compute);
        const Value none = zeros(b, y.type());
        const Value of_h = gradient_at(b, s, carried[0], grad_output, t);
        const Value of_gates =
            relu ? b.select(b.compare(y, none, Compare::kLe), none, of_h) : through_tanh(b, of_h, y);
        return Values{where_present(b, s, t, through_weight(b, s, of_gates), of_h),
                      with_step(b, carried[1], t, where_present(b, s, t, of_gates, none))};
      });
  return {made[1], to(builder, made[0], output.dtype())};
}

// Results: the gradients of the gates and of the first state.
Values rnn_backward(Emit& e) {
  const Steps s = read(e, "output", 1, 1);
  const Value output = e.tensor("output"), of_output = e.tensor_or_empty("grad_output");
  const Value of_hidden = gradient_at_end(e, s, "grad_hidden");
  const bool relu = e.boolean("relu");
  return e.b.composite(stablehlo::composites::kRnnGradient,
                       {output, s.weight, of_output, of_hidden, s.batch_sizes},
                       {{"reverse", int64_t{s.reverse}}, {"relu", int64_t{relu}}},
                       [&] { return rnn_gradient_loop(e.b, s, output, of_output, of_hidden, relu); });
}

constexpr Row kRecurrentRows[] = {
    {.name = "sluice::lstm_steps", .emit = lstm},
    {.name = "sluice::lstm_steps_backward", .emit = lstm_backward},
    {.name = "sluice::gru_steps", .emit = gru},
    {.name = "sluice::gru_steps_backward", .emit = gru_backward},
    {.name = "sluice::rnn_steps", .emit = rnn},
    {.name = "sluice::rnn_steps_backward", .emit = rnn_backward},
};

}  // namespace

std::span<const Row> recurrent_rows() { return kRecurrentRows; }

}  // namespace sluice::ops
