#include "sluice/patterns/loops/loop.h"

#include <algorithm>

#include "sluice/patterns/moves/constants.h"

namespace sluice::patterns {
namespace {

using stablehlo::Builder;
using stablehlo::Dims;
using stablehlo::DType;
using stablehlo::Type;
using stablehlo::Value;
using stablehlo::Values;
using Kind = LoopSource::Kind;

// Returns the start indices of a stack's row at a run-time place.
Values row_starts(Builder& b, Value round, size_t rank) {
  Values starts(rank, b.splat(0, Type{DType::kS32, {}}));
  starts[0] = round;
  return starts;
}

// Returns first + round * step, in the type of `first`.
Value moved(Builder& b, Value first, Value round, int64_t step) {
  if (step == 0) return first;
  const Value number = b.convert(round, first.dtype());
  return b.add(first, step == 1 ? number : b.multiply(number, b.splat(step, number.type())));
}

}  // namespace

Dims with_front(int64_t front, const Dims& dims) {
  Dims all = {front};
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

void Loop::read_after(Value v) {
  for (const LoopSource& source : plan_.sources)
    if (source.kind == Kind::kCarried && source.values.size() == 1 && source.values[0] == v)
      reads_.initial.insert({source.operation, source.result});
}

void Loop::choose_kept() {
  if (layers_) keep_less(plan_, reads_);
}

void Loop::make() {
  prepare();
  const auto rounds = static_cast<int64_t>(plan_.rounds);
  results_ = r_.b.while_(
      inits_,
      [&](Builder& b, std::span<const Value> state) {
        return Values{b.compare(state[0], b.splat(rounds, state[0].type()), stablehlo::Compare::kLt)};
      },
      [&](Builder&, std::span<const Value> state) { return body(state); });
  for (size_t s = 0; s < plan_.sources.size(); ++s) {
    const LoopSource& source = plan_.sources[s];
    if (source.kind != Kind::kCarried) continue;
    const Kept& kept = kept_.at({source.operation, source.result});
    if (kept.inputs && kept.first == first_[s])
      r_.replace_from_here(source.values[0], row(results_[kept.stack], 0));
  }
}

Value Loop::made(size_t round, size_t operation, size_t result) {
  const auto reads = reads_.results.find({operation, result});
  if (reads == reads_.results.end() || round < reads->second.first || round > reads->second.second) return {};
  if (const Value all = converted_[operation]) {
    const bool reversed = is_reversed(plan_.sources[plan_.operations[operation].operands[0]]);
    return row(all, reversed ? plan_.rounds - 1 - round : round);
  }
  const Kept& kept = kept_.at({operation, result});
  const bool stacked = kept.stack > 0 && !(kept.inputs && round + 1 == plan_.rounds);
  if (!stacked) return results_[kept.first + kept.count - (plan_.rounds - round)];
  return row(results_[kept.stack], kept.inputs ? round + 1 : round - kept.from);
}

// Makes the loop's initial state before the loop.
void Loop::prepare() {
  inits_ = {r_.b.splat(0, Type{DType::kS32, {}})};
  for (const LoopSource& source : plan_.sources) {
    first_.push_back(inits_.size());
    if (source.kind == Kind::kCarried) {
      Kept& kept = kept_[{source.operation, source.result}];
      if (source.values.size() > kept.count) kept = {.first = inits_.size(), .count = source.values.size()};
      for (Value v : source.values) inits_.push_back(r_.now(v));
    }
    bases_.push_back(base_of(source));
  }
  convert_weights();
  for (const auto& [result, rounds] : reads_.results)
    if (!repeats(result.first) && !converted_[result.first]) keep(result, rounds.first);
  for (const RoundOperation& op : plan_.operations) starts_.push_back(starts_of(op.moving));
  for (const LoopSource& source : plan_.sources) source_starts_.push_back(starts_of(source.moving));
  find_needed();
}

void Loop::keep(RoundResult result, size_t first_round) {
  const Type type = type_of(result);
  Kept& kept = kept_[result];
  const size_t needed = plan_.rounds - first_round;
  if (needed <= kept.count) return;
  if (needed == 1) {
    kept = {.first = inits_.size(), .count = 1};
    inits_.push_back(r_.b.splat(0, type));
    last_.push_back(result);
    return;
  }
  kept.inputs = layers_ && kept.count == 1 && reads_.initial.contains(result);
  kept.stack = inits_.size();
  kept.from = layers_ && !kept.inputs ? first_round : 0;
  const auto rows = static_cast<int64_t>(plan_.rounds - kept.from);
  inits_.push_back(r_.b.splat(0, Type{type.dtype, with_front(rows, type.dims)}));
  stacked_.push_back(result);
}

void Loop::convert_weights() {
  converted_.assign(plan_.operations.size(), Value());
  for (size_t j = 0; j < plan_.operations.size(); ++j) {
    const RoundOperation& round = plan_.operations[j];
    if (!layers_ || !converts_weight(plan_, j)) continue;
    converted_[j] = r_.b.convert(bases_[round.operands[0]], round.op->results[0].dtype());
  }
}

// Finds the operations that something in the loop or its results needs.
void Loop::find_needed() {
  needed_.assign(plan_.operations.size(), false);
  for (const LoopSource& source : plan_.sources)
    if (source.kind == Kind::kCarried) needed_[source.operation] = true;
  for (const RoundResult& result : last_) needed_[result.first] = true;
  for (const RoundResult& result : stacked_) needed_[result.first] = true;
  std::vector<size_t> sources;
  for (size_t j = plan_.operations.size(); j-- > 0;) {
    if (!needed_[j]) continue;
    sources = plan_.operations[j].operands;
    while (!sources.empty()) {
      const LoopSource& source = plan_.sources[sources.back()];
      sources.pop_back();
      if (source.kind == Kind::kInner) needed_[source.operation] = true;
      sources.insert(sources.end(), source.operands.begin(), source.operands.end());
    }
  }
}

// Equal stacks of weights are made once: forward and backward loops take them in one order.
bool Loop::is_reversed(const LoopSource& source) const {
  return layers_ && source.kind == Kind::kEach && source.values.front().id() > source.values.back().id();
}

// Returns the value that a source needs before the loop.
Value Loop::base_of(const LoopSource& source) {
  Builder& b = r_.b;
  if (source.kind == Kind::kSame) return r_.now(source.values[0]);
  if (source.kind == Kind::kNumber) return b.splat(source.first, Type{source.values[0].dtype(), {}});
  if (source.kind != Kind::kEach) return {};
  Values rows;
  for (Value v : source.values) {
    const Value now = r_.now(v);
    rows.push_back(b.reshape(now, with_front(1, now.dims())));
  }
  if (is_reversed(source)) std::reverse(rows.begin(), rows.end());
  return b.concatenate(rows, 0);
}

// Returns a row of a stack, outside of the loop.
Value Loop::row(Value stack, size_t number) {
  Dims start(stack.dims().size(), 0), limit = stack.dims();
  start[0] = static_cast<int64_t>(number);
  limit[0] = start[0] + 1;
  return r_.b.reshape(r_.b.slice(stack, start, limit), {stack.dims().begin() + 1, stack.dims().end()});
}

// Returns the round's row of a stack, in the body.
Value Loop::row_of_round(Value stack, bool reversed) {
  Builder& b = r_.b;
  Dims sizes = stack.dims();
  const Value at = reversed ? b.subtract(b.splat(sizes[0] - 1, round_.type()), round_) : round_;
  sizes[0] = 1;
  return b.reshape(b.dynamic_slice(stack, row_starts(b, at, sizes.size()), sizes),
                   {sizes.begin() + 1, sizes.end()});
}

Values Loop::starts_of(const Moving& moving) {
  Values starts;
  if (!moving.moves()) return starts;
  if (!moving.places.empty()) {
    std::vector<int32_t> all;
    for (const Dims& place : moving.places) all.insert(all.end(), place.begin(), place.end());
    const auto rank = static_cast<int64_t>(moving.first.size());
    return {r_.b.constant(Type{DType::kS32, {static_cast<int64_t>(plan_.rounds), rank}}, all.data())};
  }
  for (const int64_t first : moving.first) starts.push_back(r_.b.splat(first, Type{DType::kS32, {}}));
  return starts;
}

// Returns where the operation begins in this round. firsts: the result of starts_of().
Values Loop::starts(const Moving& moving, const Values& firsts) {
  Builder& b = r_.b;
  Values starts;
  for (size_t i = 0; i < moving.first.size(); ++i) {
    if (moving.places.empty()) {
      starts.push_back(moved(b, firsts[i], round_, moving.step[i]));
      continue;
    }
    const Value at[] = {round_, b.splat(static_cast<int64_t>(i), round_.type())};
    starts.push_back(b.reshape(b.dynamic_slice(firsts[0], at, {1, 1}), {}));
  }
  return starts;
}

// Adds the operation with these operands, at the place for the round.
Values Loop::add(const Operation& op, const Values& operands, const Moving& moving, const Values& firsts,
                 const std::unordered_map<int32_t, Value>& seen) {
  Builder& b = r_.b;
  r_.name_as(op);
  if (firsts.empty()) return r_.copy(op, operands, seen);
  const Values starts = this->starts(moving, firsts);
  const Value x = operands[0];
  if (op.is("stablehlo.slice")) {
    Dims sizes = op.attributes.list("limit_indices");
    for (size_t i = 0; i < sizes.size(); ++i) sizes[i] -= moving.first[i];
    return {b.slice(b.dynamic_slice(x, starts, sizes), Dims(sizes.size(), 0), sizes,
                    op.attributes.list("strides"))};
  }
  const Dims none(starts.size(), 0);
  const Value spread = b.pad(x, operands[1], none, none, op.attributes.list("interior_padding"));
  const Value around = b.broadcast(operands[1], op.results[0].dims());
  return {b.dynamic_update_slice(around, spread, starts)};
}

// Returns whether the source pads a part with zeros, in the round and at a place that moves: the gradient of
// a slice.
bool Loop::is_part_in_zeros(size_t source) const {
  const LoopSource& made = plan_.sources[source];
  if (made.kind != Kind::kInner || starts_[made.operation].empty()) return false;
  const RoundOperation& pad = plan_.operations[made.operation];
  if (!pad.op->is("stablehlo.pad")) return false;
  const Dims interior = pad.op->attributes.list("interior_padding");
  const bool dense = std::all_of(interior.begin(), interior.end(), [](int64_t gap) { return gap == 0; });
  const LoopSource& around = plan_.sources[pad.operands[1]];
  if (!dense || around.kind != Kind::kSame) return false;
  return is_zeros(r_, around.values[0]);
}

// Adds only the elements of such a part to a sum, so that N rounds over a tensor of N rows take N additions
// of a row. Returns no value for another operation.
Value Loop::add_part(const RoundOperation& round, const Values& operands) {
  if (!round.op->is("stablehlo.add") || round.operands[0] == round.operands[1]) return {};
  for (const size_t i : {size_t{1}, size_t{0}}) {
    if (!is_part_in_zeros(round.operands[i])) continue;
    Builder& b = r_.b;
    r_.name_as(*round.op);
    const size_t number = plan_.sources[round.operands[i]].operation;
    const RoundOperation& pad = plan_.operations[number];
    const Values starts = this->starts(pad.moving, starts_[number]);
    const Value part = value_of(pad.operands[0]), whole = operands[1 - i];
    return b.dynamic_update_slice(whole, b.add(b.dynamic_slice(whole, starts, part.dims()), part), starts);
  }
  return {};
}

// Returns the value of a source in this round.
Value Loop::value_of(size_t number) {
  Value& value = values_[number];
  if (value) return value;
  Builder& b = r_.b;
  const LoopSource& source = plan_.sources[number];
  switch (source.kind) {
    case Kind::kSame:
      value = bases_[number];
      break;
    case Kind::kNumber:
      value = b.broadcast(moved(b, bases_[number], round_, source.step), source.values[0].dims());
      break;
    case Kind::kInner:
      value = made_[source.operation][source.result];
      break;
    case Kind::kCarried:
      value = state_[first_[number]];
      break;
    case Kind::kMoved: {
      Values operands;
      for (const size_t operand : source.operands) operands.push_back(value_of(operand));
      value = add(*source.op, operands, source.moving, source_starts_[number])[0];
      break;
    }
    case Kind::kEach:
      value = row_of_round(bases_[number], is_reversed(source));
      break;
  }
  return value;
}

Values Loop::operation_in_body(size_t j) {
  const RoundOperation& round = plan_.operations[j];
  if (converted_[j]) return {row_of_round(converted_[j], is_reversed(plan_.sources[round.operands[0]]))};
  Values operands;
  for (const size_t operand : round.operands) operands.push_back(value_of(operand));
  std::unordered_map<int32_t, Value> seen;
  const Values were = operands_of(*round.op);
  for (size_t i = round.op->operands.size(); i < were.size(); ++i) seen[were[i].id()] = operands[i];
  operands.resize(round.op->operands.size());
  if (const Value sum = add_part(round, operands)) return {sum};
  return add(*round.op, operands, round.moving, starts_[j], seen);
}

Values Loop::body(std::span<const Value> state) {
  state_ = {state.begin(), state.end()};
  round_ = state[0];
  values_.assign(plan_.sources.size(), Value());
  for (size_t j = 0; j < plan_.operations.size(); ++j)
    made_.push_back(needed_[j] ? operation_in_body(j) : Values());
  return next_state();
}

Values Loop::next_state() {
  Builder& b = r_.b;
  Values next = state_;
  next[0] = b.add(round_, b.splat(1, round_.type()));
  for (size_t s = 0; s < plan_.sources.size(); ++s) {
    const LoopSource& source = plan_.sources[s];
    if (source.kind != Kind::kCarried) continue;
    const size_t first = first_[s], count = source.values.size();
    for (size_t i = 0; i + 1 < count; ++i) next[first + i] = state_[first + i + 1];
    next[first + count - 1] = made_[source.operation][source.result];
  }
  for (const RoundResult& result : last_) next[kept_.at(result).first] = made_[result.first][result.second];
  for (const RoundResult& result : stacked_) {
    const Kept& kept = kept_.at(result);
    const Value value = kept.inputs ? state_[kept.first] : made_[result.first][result.second];
    const Value row = b.reshape(value, with_front(1, value.dims()));
    Value at = round_;
    if (kept.from > 0) {  // what rounds before the first kept one write is overwritten
      const Value zero = b.splat(0, round_.type());
      at = b.maximum(b.subtract(round_, b.splat(static_cast<int64_t>(kept.from), round_.type())), zero);
    }
    next[kept.stack] =
        b.dynamic_update_slice(state_[kept.stack], row, row_starts(b, at, static_cast<size_t>(row.rank())));
  }
  return next;
}

}  // namespace sluice::patterns
