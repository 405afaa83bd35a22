// Makes loops of the rounds that loop_plan.h finds.
//
// A loop carries the number of its round and the values that its rounds pass on to later ones. For each
// result that is read outside it also carries a stack with one row a round, unless only the last rounds'
// results are read. Readers of such a result get the row of the stack; a later loop that reads row after row
// reads the stack itself.
#include "sluice/patterns/loops/loops.h"

#include <algorithm>
#include <map>

#include "sluice/patterns/loops/loop_plan.h"
#include "sluice/patterns/loops/rounds.h"
#include "sluice/patterns/moves/constants.h"

namespace sluice::patterns {
namespace {

using stablehlo::Builder;
using stablehlo::Dims;
using stablehlo::DType;
using stablehlo::Operation;
using stablehlo::Rewriter;
using stablehlo::Type;
using stablehlo::Value;
using stablehlo::Values;

Dims with_front(int64_t front, const Dims& dims) {
  Dims all = {front};
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

// Returns the start indices of a stack's row at a run-time place.
Values row_starts(Builder& b, Value round, size_t rank) {
  Values starts(rank, b.splat(0, Type{DType::kS32, {}}));
  starts[0] = round;
  return starts;
}

// A loop under construction.
class Loop {
 public:
  Loop(Rewriter& r, const LoopPlan& plan) : r_(r), plan_(plan) {}

  // Notes that a result of a round is read outside of the loop.
  void read_outside(size_t round, size_t operation, size_t result) {
    auto [found, added] = outside_.try_emplace({operation, result}, round, round);
    if (added) return;
    found->second.first = std::min(found->second.first, round);
    found->second.second = std::max(found->second.second, round);
  }

  void make() {
    prepare();
    const auto rounds = static_cast<int64_t>(plan_.rounds);
    results_ = r_.b.while_(
        inits_,
        [&](Builder& b, std::span<const Value> state) {
          return Values{b.compare(state[0], b.splat(rounds, state[0].type()), stablehlo::Compare::kLt)};
        },
        [&](Builder&, std::span<const Value> state) { return body(state); });
  }

  // Returns the replacement of a result that is read outside; nothing for other results.
  Value made(size_t round, size_t operation, size_t result) {
    if (!outside_.contains({operation, result})) return {};
    const Kept kept = kept_.at({operation, result});
    if (!kept.stacked) return results_[kept.first + kept.count - (plan_.rounds - round)];
    const Value stack = results_[kept.first];
    Dims start(stack.dims().size(), 0), limit = stack.dims();
    start[0] = static_cast<int64_t>(round);
    limit[0] = start[0] + 1;
    return r_.b.reshape(r_.b.slice(stack, start, limit), {stack.dims().begin() + 1, stack.dims().end()});
  }

 private:
  using Result = std::pair<size_t, size_t>;  // the operation, and which of its results
  // Where a result is in the loop's state: a stack, or the values of the latest rounds, the oldest first.
  struct Kept {
    size_t first = 0, count = 0;
    bool stacked = false;
  };

  const Type& type_of(Result result) const {
    return plan_.operations[result.first].op->results[result.second].type();
  }

  // Makes the loop's initial state before the loop.
  void prepare() {
    Builder& b = r_.b;
    inits_ = {b.splat(0, Type{DType::kS32, {}})};
    for (const LoopSource& source : plan_.sources) {
      first_.push_back(inits_.size());
      if (source.kind == LoopSource::Kind::kCarried) {
        const Result result{source.operation, source.result};
        Kept& kept = kept_[result];
        if (source.values.size() > kept.count) kept = {inits_.size(), source.values.size(), false};
        for (Value v : source.values) inits_.push_back(r_.now(v));
      }
      bases_.push_back(base_of(source));
    }
    for (const auto& [result, rounds] : outside_) {
      const Type type = type_of(result);
      Kept& kept = kept_[result];
      const size_t needed = plan_.rounds - rounds.first;
      if (needed <= kept.count) continue;
      if (needed == 1) {
        kept = {inits_.size(), 1, false};
        inits_.push_back(b.splat(0, type));
        last_.push_back(result);
        continue;
      }
      kept = {inits_.size(), 1, true};
      inits_.push_back(
          b.splat(0, Type{type.dtype, with_front(static_cast<int64_t>(plan_.rounds), type.dims)}));
      stacked_.push_back(result);
    }
    for (const RoundOperation& op : plan_.operations) starts_.push_back(starts_of(op.moving));
    for (const LoopSource& source : plan_.sources) source_starts_.push_back(starts_of(source.moving));
  }

  // Returns the value that a source needs before the loop.
  Value base_of(const LoopSource& source) {
    Builder& b = r_.b;
    if (source.kind == LoopSource::Kind::kSame) return r_.now(source.values[0]);
    if (source.kind == LoopSource::Kind::kNumber)
      return b.splat(source.first, Type{source.values[0].dtype(), {}});
    if (source.kind != LoopSource::Kind::kEach) return {};
    Values rows;
    for (Value v : source.values) {
      const Value now = r_.now(v);
      rows.push_back(b.reshape(now, with_front(1, now.dims())));
    }
    return b.concatenate(rows, 0);
  }

  Values starts_of(const Moving& moving) {
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

  // Returns first + round * step, in the type of `first`.
  static Value moved(Builder& b, Value first, Value round, int64_t step) {
    if (step == 0) return first;
    const Value number = b.convert(round, first.dtype());
    return b.add(first, step == 1 ? number : b.multiply(number, b.splat(step, number.type())));
  }

  // Returns where the operation begins in this round. firsts: the result of starts_of().
  Values starts(const Moving& moving, const Values& firsts) {
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
  Values add(const Operation& op, const Values& operands, const Moving& moving, const Values& firsts,
             const std::unordered_map<int32_t, Value>& seen = {}) {
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

  // Returns whether the source pads a part with zeros, in the round and at a place that moves: the gradient
  // of a slice.
  bool is_part_in_zeros(size_t source) const {
    const LoopSource& made = plan_.sources[source];
    if (made.kind != LoopSource::Kind::kInner || starts_[made.operation].empty()) return false;
    const RoundOperation& pad = plan_.operations[made.operation];
    if (!pad.op->is("stablehlo.pad")) return false;
    const Dims interior = pad.op->attributes.list("interior_padding");
    const bool dense = std::all_of(interior.begin(), interior.end(), [](int64_t gap) { return gap == 0; });
    const LoopSource& around = plan_.sources[pad.operands[1]];
    if (!dense || around.kind != LoopSource::Kind::kSame) return false;
    return is_zeros(r_, around.values[0]);
  }

  // Adds only the elements of such a part to a sum, so that N rounds over a tensor of N rows take N additions
  // of a row. Returns no value for another operation.
  Value add_part(const RoundOperation& round, const Values& operands) {
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
  Value value_of(size_t number) {
    Value& value = values_[number];
    if (value) return value;
    Builder& b = r_.b;
    const LoopSource& source = plan_.sources[number];
    switch (source.kind) {
      case LoopSource::Kind::kSame:
        value = bases_[number];
        break;
      case LoopSource::Kind::kNumber:
        value = b.broadcast(moved(b, bases_[number], round_, source.step), source.values[0].dims());
        break;
      case LoopSource::Kind::kInner:
        value = made_[source.operation][source.result];
        break;
      case LoopSource::Kind::kCarried:
        value = state_[first_[number]];
        break;
      case LoopSource::Kind::kMoved: {
        Values operands;
        for (const size_t operand : source.operands) operands.push_back(value_of(operand));
        value = add(*source.op, operands, source.moving, source_starts_[number])[0];
        break;
      }
      case LoopSource::Kind::kEach: {
        const Value rows = bases_[number];
        Dims sizes = rows.dims();
        sizes[0] = 1;
        const Value row = b.dynamic_slice(rows, row_starts(b, round_, sizes.size()), sizes);
        value = b.reshape(row, {sizes.begin() + 1, sizes.end()});
        break;
      }
    }
    return value;
  }

  Values body(std::span<const Value> state) {
    Builder& b = r_.b;
    state_ = {state.begin(), state.end()};
    round_ = state[0];
    values_.assign(plan_.sources.size(), Value());
    for (size_t j = 0; j < plan_.operations.size(); ++j) {
      const RoundOperation& round = plan_.operations[j];
      Values operands;
      for (const size_t operand : round.operands) operands.push_back(value_of(operand));
      std::unordered_map<int32_t, Value> seen;
      const Values were = operands_of(*round.op);
      for (size_t i = round.op->operands.size(); i < were.size(); ++i) seen[were[i].id()] = operands[i];
      operands.resize(round.op->operands.size());
      if (const Value sum = add_part(round, operands)) {
        made_.push_back({sum});
        continue;
      }
      made_.push_back(add(*round.op, operands, round.moving, starts_[j], seen));
    }
    Values next = state_;
    next[0] = b.add(round_, b.splat(1, round_.type()));
    for (size_t s = 0; s < plan_.sources.size(); ++s) {
      const LoopSource& source = plan_.sources[s];
      if (source.kind != LoopSource::Kind::kCarried) continue;
      const size_t first = first_[s], count = source.values.size();
      for (size_t i = 0; i + 1 < count; ++i) next[first + i] = state_[first + i + 1];
      next[first + count - 1] = made_[source.operation][source.result];
    }
    for (const Result& result : last_) next[kept_.at(result).first] = made_[result.first][result.second];
    for (const Result& result : stacked_) {
      const size_t at = kept_.at(result).first;
      const Value value = made_[result.first][result.second];
      const Value row = b.reshape(value, with_front(1, value.dims()));
      next[at] =
          b.dynamic_update_slice(state_[at], row, row_starts(b, round_, static_cast<size_t>(row.rank())));
    }
    return next;
  }

  Rewriter& r_;
  const LoopPlan& plan_;
  std::map<Result, std::pair<size_t, size_t>> outside_;  // the first and the last round in which it is read
  std::map<Result, Kept> kept_;
  std::vector<Result> last_, stacked_;
  Values inits_, results_;
  std::vector<size_t> first_;  // [source]: its place in the state, if it is carried
  Values bases_;               // [source]
  std::vector<Values> starts_, source_starts_;
  // These members are used while the body is made.
  Value round_;
  Values state_, values_;
  std::vector<Values> made_;
};

// A row of a stack, or another slice of one place along the first dimension, in any shape.
struct Row {
  Value stack;
  int64_t place = 0;
};
Row row_of(const Rewriter& r, Value v) {
  const Operation* const op = r.made_by(r.before_reshapes(v), "stablehlo.slice");
  if (op == nullptr || op->operands[0].rank() == 0) return {};
  const Dims start = op->attributes.list("start_indices");
  Dims row = op->operands[0].dims();
  row[0] = 1;
  return op->results[0].dims() == row ? Row{op->operands[0], start[0]} : Row{};
}

// Joins consecutive rows of one stack, ascending or descending, along the dimension that the parts are joined
// along.
Value join(Builder& b, std::span<const Value> parts, const Row& first, int64_t step, int64_t dim) {
  const auto count = static_cast<int64_t>(parts.size());
  const int64_t low = step > 0 ? first.place : first.place - count + 1;
  Value rows = b.slice_dim(first.stack, 0, low, low + count);
  if (step < 0) rows = b.reverse(rows, {0});
  const Dims& one = parts[0].dims();
  rows = b.reshape(rows, with_front(count, one));
  Dims order, all = one;
  for (int64_t d = 1; d <= dim; ++d) order.push_back(d);
  order.push_back(0);
  for (int64_t d = dim + 1; d <= parts[0].rank(); ++d) order.push_back(d);
  all[static_cast<size_t>(dim)] *= count;
  return b.reshape(b.transpose(rows, order), all);
}

// Replaces a concatenation of many consecutive rows with one slice of the stack.
void join_rows(Rewriter& r, size_t least) {
  r.each([&](const Operation& op) -> Values {
    if (!op.is("stablehlo.concatenate") || op.operands.size() < least) return {};
    std::vector<Row> rows;
    for (Value v : op.operands) rows.push_back(row_of(r, v));
    const int64_t dim = op.attributes.list("dimension").at(0);
    Values parts;
    for (size_t i = 0; i < rows.size();) {
      const auto follows = [&](size_t k, int64_t step) {
        return k < rows.size() && rows[k].stack && rows[k].stack == rows[i].stack &&
               rows[k].place == rows[k - 1].place + step && op.operands[k].dims() == op.operands[i].dims();
      };
      const int64_t step = follows(i + 1, 1) ? 1 : -1;
      size_t end = i + 1;
      while (follows(end, step)) ++end;
      const std::span<const Value> run = std::span(op.operands).subspan(i, end - i);
      if (run.size() < least)
        parts.insert(parts.end(), run.begin(), run.end());
      else
        parts.push_back(join(r.b, run, rows[i], step, dim));
      i = end;
    }
    if (parts.size() == op.operands.size()) return {};
    return {r.b.concatenate(parts, dim)};
  });
}

// Plans the loops that can be made at once.
LoopPlanner planned(const Rewriter& r, const Sequence& sequence, size_t min_rounds) {
  LoopPlanner planner(r, sequence, min_rounds);
  for (const Repeat& repeat : find_repeats(sequence.symbols(), min_rounds))
    planner.add(repeat.begin, repeat.period, repeat.rounds());
  return planner;
}

// Makes the loops and returns their number.
size_t make_loops(Rewriter& r, size_t min_rounds) {
  const Sequence sequence(r);
  const LoopPlanner planner = planned(r, sequence, min_rounds);
  if (planner.loops().empty()) return 0;
  constexpr size_t kNone = ~size_t{0};
  std::vector<size_t> loop_of(sequence.size(), kNone);
  std::vector<Loop> loops;
  for (const LoopPlan& plan : planner.loops()) {
    std::fill(loop_of.begin() + static_cast<int64_t>(plan.begin),
              loop_of.begin() + static_cast<int64_t>(plan.end()), loops.size());
    loops.emplace_back(r, plan);
  }
  std::vector<bool> read(sequence.size(), false);  // outside of the operation's loop
  const auto mark = [&](Value v, size_t reader) {
    const Sequence::Place place = sequence.place(v);
    if (place.position < 0) return;
    const auto position = static_cast<size_t>(place.position);
    const size_t loop = loop_of[position];
    if (loop == kNone || loop == reader) return;
    const LoopPlan& plan = planner.loops()[loop];
    const size_t offset = position - plan.begin;
    loops[loop].read_outside(offset / plan.period, offset % plan.period, place.result);
    read[position] = true;
  };
  for (size_t i = 0; i < sequence.size(); ++i)
    for (Value v : operands_of(sequence[i])) mark(v, loop_of[i]);
  for (Value v : r.results()) mark(v, kNone);

  size_t position = 0;
  r.each([&](const Operation& op) -> Values {
    if (op.is("stablehlo.constant")) return {};
    const size_t at = position++;
    const size_t number = loop_of[at];
    if (number == kNone) return {};
    const LoopPlan& plan = planner.loops()[number];
    if (at == plan.begin) loops[number].make();
    if (!read[at]) return {};
    Values made = op.results;
    const size_t round = (at - plan.begin) / plan.period, operation = (at - plan.begin) % plan.period;
    for (size_t i = 0; i < made.size(); ++i)
      if (const Value v = loops[number].made(round, operation, i)) made[i] = v;
    return made;
  });
  return planner.loops().size();
}

}  // namespace

void loops(Rewriter& r, size_t min_rounds) {
  // A program without loops stays exactly as it is.
  if (min_rounds < 2 || planned(r, Sequence(r), min_rounds).loops().empty()) return;
  constexpr int kPasses = 8;  // a later pass makes loops that read the results of earlier loops
  for (int pass = 0; pass < kPasses; ++pass) {
    r.flatten();
    if (make_loops(r, min_rounds) == 0) break;
    join_rows(r, min_rounds);
  }
}

}  // namespace sluice::patterns
