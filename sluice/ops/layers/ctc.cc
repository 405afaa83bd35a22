// Connectionist temporal classification (Graves et al., 2006, "Connectionist Temporal Classification"): the
// probability of a sequence of labels, summed over all alignments with the inputs, in logarithms.
//
// A target of n labels has 2n + 1 states: a blank before, between and after them. alpha[t, s] is the
// probability of the inputs up to t, ending in state s; beta[t, s] is the probability of the inputs from t
// on, beginning there. Lengths are tensors or lists: a list makes them a part of the program.
#include <algorithm>
#include <cmath>

#include "sluice/base/text/join.h"
#include "sluice/ops/indexing/indexing.h"
#include "sluice/ops/layers/loss.h"

namespace sluice::ops::loss {
namespace {

struct Ctc {
  int64_t time = 0, batch = 0, classes = 0, states = 0;
  Value log_probs;       // [time, batch, classes], compute type
  Value label;           // s32 [batch, states]
  Value of_label;        // log_probs of each state's label, [time, batch, states]
  Value may_skip;        // predicate [batch, states]: the state can follow the last but one
  Value input_lengths;   // s32 [batch]
  Value target_lengths;  // s32 [batch]
};

// Reads one of the lists of lengths, as s32 [batch].
Value read_lengths(Emit& e, std::string_view name, int64_t batch, int64_t most) {
  Builder& b = e.b;
  const bool is_list = e.op().find(".Tensor") == std::string_view::npos;
  if (is_list) {
    for (const int64_t length : e.ints(name))
      e.check(length >= 0 && length <= most,
              base::str("expected ", name, " from 0 to ", most, ", found ", length));
  }
  const Value lengths = is_list ? b.constant_i64(e.ints(name)) : e.tensor(name);
  e.check(
      stablehlo::is_integer(lengths.dtype()) && lengths.dims() == Dims{batch},
      base::str("expected ", name, " of size batch_size (", batch, "), integers, found ", in_words(lengths)));
  return narrow_index(b, lengths, most);
}

// Returns the longest target: the exact length if the lengths are a list, else the room in `targets`.
int64_t longest_target(Emit& e, Value targets) {
  if (e.op().find(".Tensor") != std::string_view::npos) return targets.dim(targets.rank() - 1);
  const Dims& lengths = e.ints("target_lengths");
  return lengths.empty() ? 0 : std::max<int64_t>(*std::max_element(lengths.begin(), lengths.end()), 0);
}

// Returns labels [batch, labels]; entries after a target's end are arbitrary.
Value padded_targets(Emit& e, const Ctc& c, Value targets, int64_t labels) {
  Builder& b = e.b;
  const Value whole = narrow_index(b, targets, c.classes);
  if (targets.type().numel() == 0 || labels == 0) return b.splat(0, Type{DType::kS32, {c.batch, labels}});
  if (targets.rank() == 2) return b.slice_dim(whole, 1, 0, labels);
  const Values ends = scan(b, {c.target_lengths}, {b.splat(0, Type{DType::kS32, {}})}, 0,
                           [](Builder& body, const Values& earlier, const Values& later) {
                             return Values{body.add(earlier[0], later[0])};
                           });
  const Value begins = b.subtract(ends[0], c.target_lengths);
  const Dims dims = {c.batch, labels};
  return take_along(b, whole, 0, b.add(b.broadcast_in_dim(begins, dims, {0}), positions(b, dims, 1)));
}

// Returns [batch, states]: the blank at even states, the target's labels at odd ones.
Value labels_of_states(Emit& e, const Ctc& c, Value labels) {
  Builder& b = e.b;
  const Dims dims = {c.batch, c.states};
  const Value blank = b.splat(e.integer("blank"), Type{DType::kS32, dims});
  if (labels.dim(1) == 0) return blank;
  const Value state = positions(b, dims, 1);
  const auto whole = [&](int64_t number) { return b.splat(number, state.type()); };
  const Value odd = b.compare(b.remainder(state, whole(2)), whole(1), Compare::kEq);
  const Value spread = b.pad(labels, b.splat(0, Type{DType::kS32, {}}), {0, 1}, {0, 1}, {0, 1});
  const Value last =
      b.broadcast_in_dim(b.multiply(c.target_lengths, b.splat(2, c.target_lengths.type())), dims, {0});
  return b.select(b.and_(odd, b.compare(state, last, Compare::kLt)), spread, blank);
}

// Moves x by `by` states (to higher ones if above 0), with `fill` in the places that become free.
Value moved(Builder& b, Value x, int64_t by, Value fill) { return b.pad(x, fill, {0, by}, {0, -by}); }

Ctc read_ctc(Emit& e) {
  Builder& b = e.b;
  const Value log_probs = e.tensor("log_probs"), targets = e.tensor("targets");
  e.check(log_probs.rank() == 3 && stablehlo::is_float(log_probs.dtype()),
          base::str("expected log_probs [time, batch, classes], floats, found ", in_words(log_probs)));
  Ctc c;
  c.time = log_probs.dim(0);
  c.batch = log_probs.dim(1);
  c.classes = log_probs.dim(2);
  e.check(
      stablehlo::is_integer(targets.dtype()) &&
          (targets.rank() == 1 || (targets.rank() == 2 && targets.dim(0) == c.batch)),
      base::str("expected integer targets, one after another or [batch, labels], found ", in_words(targets)));
  const int64_t blank = e.integer("blank");
  e.check(blank >= 0 && blank < c.classes,
          base::str("expected a blank in the label range 0 to ", c.classes - 1, ", found ", blank));
  const int64_t room = targets.dim(targets.rank() - 1), labels = longest_target(e, targets);
  c.input_lengths = read_lengths(e, "input_lengths", c.batch, c.time);
  c.target_lengths = read_lengths(e, "target_lengths", c.batch, room);
  c.states = 2 * labels + 1;
  c.log_probs = to(b, log_probs, compute_type(log_probs.dtype()));
  c.label = labels_of_states(e, c, padded_targets(e, c, targets, labels));
  const Dims dims = {c.time, c.batch, c.states};
  c.of_label = gather_elements(b, c.log_probs, 2, b.broadcast_in_dim(c.label, dims, {1, 2}));
  const Value before = moved(b, c.label, 2, b.splat(blank, Type{DType::kS32, {}}));
  const Value two = b.splat(2, c.label.type());
  c.may_skip = b.and_(b.compare(positions(b, c.label.dims(), 1), two, Compare::kGe),
                      b.compare(c.label, before, Compare::kNe));
  // A blank never directly follows the blank before it.
  c.may_skip = b.and_(c.may_skip, b.compare(c.label, b.splat(blank, c.label.type()), Compare::kNe));
  return c;
}

// Returns log(exp(x) + exp(y) + exp(z)), also for three -inf.
Value log_sum(Builder& b, Value x, Value y, Value z) {
  const Value top = b.maximum(b.maximum(x, y), z);
  const Value shift = b.select(is_equal(b, top, -INFINITY), zeros(b, top.type()), top);
  const auto term = [&](Value v) { return b.exp(b.subtract(v, shift)); };
  return b.add(b.log(b.add(b.add(term(x), term(y)), term(z))), shift);
}

// Makes one step of alpha (forward) or beta (backward) from the neighbouring time's [batch, states].
Value step(Builder& b, const Ctc& c, Value neighbour, bool forward) {
  const Value never = b.splat(-INFINITY, Type{neighbour.dtype(), {}});
  const Value none = b.broadcast(never, neighbour.dims());
  const int64_t by = forward ? 1 : -1;
  // Backward, state s reaches s + 2 if that state may follow it.
  const Value skip = forward ? b.select(c.may_skip, moved(b, neighbour, 2, never), none)
                             : moved(b, b.select(c.may_skip, neighbour, none), -2, never);
  return log_sum(b, neighbour, moved(b, neighbour, by, never), skip);
}

// Returns, as a predicate [batch, states], whether a state is the last or the last but one of its sample.
Value is_end(Builder& b, const Ctc& c) {
  const Dims dims = {c.batch, c.states};
  const Value state = positions(b, dims, 1);
  const Value last =
      b.broadcast_in_dim(b.multiply(c.target_lengths, b.splat(2, c.target_lengths.type())), dims, {0});
  const Value distance = b.subtract(last, state);
  return b.or_(is_equal(b, distance, 0), is_equal(b, distance, 1));
}

// Runs over the times (from the first, or from the last) and keeps all values, [time, batch, states]. at(t,
// neighbour) returns the values at time t, [batch, states].
Value over_times(Builder& b, const Ctc& c, bool forward,
                 const std::function<Value(Value t, Value neighbour)>& at) {
  const Type all{c.log_probs.dtype(), {c.time, c.batch, c.states}}, one{all.dtype, {c.batch, c.states}};
  const Type number{DType::kS32, {}};
  const Value never = b.splat(-INFINITY, one), zero = b.splat(0, number);
  const Values init = {zero, never, b.splat(-INFINITY, all)};
  return b.while_(
      init,
      [&](Builder& body, std::span<const Value> v) {
        return Values{body.compare(v[0], body.splat(c.time, number), Compare::kLt)};
      },
      [&](Builder& body, std::span<const Value> v) {
        const Value t = forward ? v[0] : body.subtract(body.splat(c.time - 1, number), v[0]);
        const Value made = at(t, v[1]);
        const Value starts[] = {t, body.splat(0, number), body.splat(0, number)};
        const Value kept =
            body.dynamic_update_slice(v[2], body.reshape(made, {1, c.batch, c.states}), starts);
        return Values{body.add(v[0], body.splat(1, number)), made, kept};
      })[2];
}

// Returns log_probs of the states' labels at time t, [batch, states].
Value emitted(Builder& b, const Ctc& c, Value t) {
  const Value zero = b.splat(0, Type{DType::kS32, {}});
  const Value starts[] = {t, zero, zero};
  return b.reshape(b.dynamic_slice(c.of_label, starts, {1, c.batch, c.states}), {c.batch, c.states});
}

Value log_alpha(Builder& b, const Ctc& c) {
  return over_times(b, c, true, [&](Value t, Value before) {
    const Type type = before.type();
    const Value first = b.broadcast(is_equal(b, t, 0), type.dims);
    // The first state is the leading blank or the first label.
    const Value begins =
        b.compare(positions(b, type.dims, 1), b.splat(2, Type{DType::kS32, type.dims}), Compare::kLt);
    const Value start = b.select(begins, zeros(b, type), number_like(b, -INFINITY, before));
    return b.add(b.select(first, start, step(b, c, before, true)), emitted(b, c, t));
  });
}

Value log_beta(Builder& b, const Ctc& c) {
  return over_times(b, c, false, [&](Value t, Value after) {
    const Type type = after.type();
    const Value ends = b.subtract(c.input_lengths, b.splat(1, c.input_lengths.type()));
    const Value last =
        b.broadcast_in_dim(b.compare(ends, b.broadcast(t, ends.dims()), Compare::kEq), type.dims, {0});
    const Value start = b.select(is_end(b, c), zeros(b, type), number_like(b, -INFINITY, after));
    return b.add(b.select(last, start, step(b, c, after, false)), emitted(b, c, t));
  });
}

}  // namespace

Values ctc(Emit& e) {
  Builder& b = e.b;
  const Ctc c = read_ctc(e);
  const DType dtype = e.tensor("log_probs").dtype();
  const Value alpha = log_alpha(b, c);
  const Dims& dims = alpha.dims();
  const Value ends = b.subtract(c.input_lengths, b.splat(1, c.input_lengths.type()));
  const Value counted =
      b.and_(b.compare(positions(b, dims, 0), b.broadcast_in_dim(ends, dims, {1}), Compare::kEq),
             b.broadcast_in_dim(is_end(b, c), dims, {1, 2}));
  const Value ways = b.select(counted, alpha, number_like(b, -INFINITY, alpha));
  const Value top = b.reduce_max(ways, {0, 2});
  const Value shift = b.select(is_equal(b, top, -INFINITY), zeros(b, top.type()), top);
  const Value sum = b.reduce_sum(b.exp(b.subtract(ways, b.broadcast_in_dim(shift, dims, {1}))), {0, 2});
  // Without inputs, only the empty target has a probability.
  const Value empty = b.and_(is_equal(b, c.input_lengths, 0), is_equal(b, c.target_lengths, 0));
  const Value likelihood = b.select(empty, zeros(b, sum.type()), b.add(b.log(sum), shift));
  return {to(b, b.negate(likelihood), dtype), to(b, b.transpose(alpha, {1, 0, 2}), dtype)};
}

// The gradient by the probability p of a class at a time: p minus the share of alignments that are in one of
// the class's states.
Values ctc_backward(Emit& e) {
  Builder& b = e.b;
  const Ctc c = read_ctc(e);
  const DType dtype = e.tensor("log_probs").dtype(), compute = c.log_probs.dtype();
  const Dims dims = {c.time, c.batch, c.states};
  const Value loss = to(b, e.tensor("neg_log_likelihood"), compute);
  const Value alpha = b.transpose(to(b, e.tensor("log_alpha"), compute), {1, 0, 2});
  e.check(alpha.dims() == dims && loss.dims() == Dims{c.batch},
          base::str("expected what aten::_ctc_loss returned, found ", in_words(loss), " and ",
                    in_words(e.tensor("log_alpha"))));
  const Value ways =
      b.add(b.subtract(b.add(alpha, log_beta(b, c)), c.of_label), b.broadcast_in_dim(loss, dims, {1}));
  // [batch, classes, time]: each state's share is added to its label's.
  const Type shares{compute, {c.batch, c.classes, c.time}};
  const Dims columns = {c.batch, c.states, 1};
  const Value index[] = {b.reshape(positions(b, c.label.dims(), 0), columns), b.reshape(c.label, columns)};
  const Value share =
      b.scatter(zeros(b, shares), b.concatenate(index, 2), b.transpose(b.exp(ways), {1, 2, 0}),
                {.update_window_dims = {2},
                 .inserted_window_dims = {0, 1},
                 .scatter_dims_to_operand_dims = {0, 1},
                 .index_vector_dim = 2},
                add_update());
  const Dims& all = c.log_probs.dims();
  Value grad = b.subtract(b.exp(c.log_probs), b.transpose(share, {2, 0, 1}));
  grad = b.multiply(grad, b.broadcast_in_dim(to(b, e.tensor("grad"), compute), all, {1}));
  Value counted =
      b.compare(positions(b, all, 0), b.broadcast_in_dim(c.input_lengths, all, {1}), Compare::kLt);
  if (e.boolean("zero_infinity")) {
    const Value finite = b.compare(loss, number_like(b, INFINITY, loss), Compare::kNe);
    counted = b.and_(counted, b.broadcast_in_dim(finite, all, {1}));
  }
  return {to(b, b.select(counted, grad, zeros(b, grad.type())), dtype)};
}

}  // namespace sluice::ops::loss
