// Makes loops of the rounds that loop_plan.h finds. Readers of a result get the row of a loop's stack
// (loop.h); a later loop that reads row after row reads the stack itself.
#include "sluice/patterns/loops/loops.h"

#include <algorithm>
#include <map>

#include "sluice/patterns/loops/loop.h"
#include "sluice/patterns/loops/loop_plan.h"
#include "sluice/patterns/loops/rounds.h"
#include "sluice/patterns/loops/rows.h"

namespace sluice::patterns {
namespace {

using stablehlo::Operation;
using stablehlo::Rewriter;
using stablehlo::Value;
using stablehlo::Values;

// What a pass looks for.
struct Aim {
  bool patient = false;   // layers wait for loops that they read (LoopPlanner)
  bool backward = false;  // layers that read the loops of earlier passes
};

// Plans the loops that can be made at once.
LoopPlanner planned(const Rewriter& r, const Sequence& sequence, const LoopRule& rule,
                    const Repeated& repeated, const Aim& aim) {
  LoopPlanner planner(r, sequence, rule, repeated);
  std::vector<Repeat> repeats = find_repeats(sequence.symbols(), rule.least());
  std::erase_if(repeats, [&](const Repeat& one) { return !rule.holds(one.period, one.rounds()); });
  for (Repeat& repeat : repeats) {
    if (!rule.layers()) break;
    repeat.begin = best_begin(sequence, repeat.begin, repeat.end, repeat.period, aim.backward);
    if (aim.patient) planner.await(repeat.begin, repeat.begin + repeat.period * repeat.rounds());
  }
  for (const Repeat& repeat : repeats) planner.add(repeat.begin, repeat.period, repeat.rounds());
  return planner;
}

// Makes the loops of one pass over the program.
class Pass {
 public:
  Pass(Rewriter& r, const LoopRule& rule, Repeated& repeated, const Aim& aim)
      : r_(r),
        repeated_(repeated),
        sequence_(r),
        planner_(planned(r, sequence_, rule, repeated, aim)),
        loop_of_(sequence_.size(), kNone) {
    for (const LoopPlan& plan : planner_.loops()) {
      std::fill(loop_of_.begin() + static_cast<int64_t>(plan.begin),
                loop_of_.begin() + static_cast<int64_t>(plan.end()), loops_.size());
      loops_.emplace_back(r, plan, rule.layers());
      for (const LoopSource& source : plan.sources)
        if (source.kind == LoopSource::Kind::kCarried)
          initials_.emplace(source.values[0].id(), loops_.size() - 1);
    }
  }

  // Makes the loops and returns their number.
  size_t make() {
    if (loops_.empty()) return 0;
    for (size_t i = 0; i < sequence_.size(); ++i)
      for (Value v : operands_of(sequence_[i])) mark(v, i, loop_of_[i]);
    for (Value v : r_.results()) mark(v, sequence_.size(), kNone);
    for (Loop& loop : loops_) loop.choose_kept();
    size_t position = 0;
    r_.each([&](const Operation& op) -> Values {
      if (op.is("stablehlo.constant")) return {};
      const size_t at = position++;
      return loop_of_[at] == kNone ? Values() : replaced(op, at);
    });
    return loops_.size();
  }

 private:
  static constexpr size_t kNone = ~size_t{0};

  // Notes that the operation at this position, in this loop or in none, reads a value.
  void mark(Value v, size_t position, size_t reader) {
    auto [initial, last] = initials_.equal_range(v.id());
    for (; initial != last; ++initial)
      if (position >= planner_.loops()[initial->second].end()) loops_[initial->second].read_after(v);
    const Sequence::Place place = sequence_.place(v);
    if (place.position < 0) return;
    const size_t made = static_cast<size_t>(place.position), loop = loop_of_[made];
    if (loop == kNone || loop == reader) return;
    const LoopPlan& plan = planner_.loops()[loop];
    const size_t offset = made - plan.begin;
    loops_[loop].read_outside(offset / plan.period, offset % plan.period, place.result);
  }

  // Returns what takes the place of an operation's results outside of its loop.
  Values replaced(const Operation& op, size_t at) {
    const LoopPlan& plan = planner_.loops()[loop_of_[at]];
    Loop& loop = loops_[loop_of_[at]];
    const size_t round = (at - plan.begin) / plan.period, operation = (at - plan.begin) % plan.period;
    if (at == plan.begin) loop.make();
    if (loop.repeats(operation)) {
      Values made = op.results;
      if (at == plan.begin) {  // it was looked at before the loop had replaced its operands
        Values operands;
        for (Value v : op.operands) operands.push_back(r_.now(v));
        made = r_.copy(op, operands);
      }
      for (Value v : made) repeated_.insert(v.id());
      return at == plan.begin ? made : Values();
    }
    Values made = op.results;
    for (size_t i = 0; i < made.size(); ++i)
      if (const Value v = loop.made(round, operation, i)) made[i] = v;
    return made == op.results ? Values() : made;
  }

  Rewriter& r_;
  Repeated& repeated_;
  const Sequence sequence_;
  const LoopPlanner planner_;
  std::vector<size_t> loop_of_;  // [position]
  std::vector<Loop> loops_;
  std::multimap<int32_t, size_t> initials_;  // by a value's id: loops that begin with it
};

}  // namespace

void loops(Rewriter& r, const LoopRule& rule) {
  if (rule.rounds < 2) return;
  Repeated repeated;
  // A program without loops stays exactly as it is.
  if (planned(r, Sequence(r), rule, repeated, {}).loops().empty()) return;
  constexpr int kPasses = 8;  // a later pass makes loops that read the results of earlier loops
  Aim aim{.patient = rule.layers()};
  for (int pass = 0; pass < kPasses; ++pass) {
    r.flatten();
    const size_t made = Pass(r, rule, repeated, aim).make();
    if (made == 0 && !aim.patient) break;
    aim = {.patient = aim.patient && made > 0, .backward = true};
    join_rows(r, rule.least());
  }
  if (rule.layers()) share_stacks(r);
}

}  // namespace sluice::patterns
