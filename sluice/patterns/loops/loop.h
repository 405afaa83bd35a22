// One loop under construction. Internal to this room.
#pragma once

#include <map>
#include <vector>

#include "sluice/patterns/loops/kept.h"
#include "sluice/patterns/loops/loop_plan.h"

namespace sluice::patterns {

// Returns dims with one more in front.
stablehlo::Dims with_front(int64_t front, const stablehlo::Dims& dims);

// Makes the loop of a plan. It carries the number of its round and the values that its rounds pass on to
// later ones. For each result that is read outside it also carries a stack with one row a round, unless only
// the last rounds' results are read.
//
// For layers (`layers`), it keeps less (kept.h), converts weights before the loop, and stacks of a value that
// is handed from round to round begin with the value before the first round.
class Loop {
 public:
  Loop(stablehlo::Rewriter& r, const LoopPlan& plan, bool layers) : r_(r), plan_(plan), layers_(layers) {}

  // These are called first. Note what is read outside of the loop: a result of a round, or a value from
  // before the loop that is read after it.
  void read_outside(size_t round, size_t operation, size_t result) {
    reads_.add({operation, result}, round, round);
  }
  void read_after(stablehlo::Value v);
  // Then this one. Afterwards reads_outside() says which results are read outside.
  void choose_kept();

  // Adds the loop in front of the operation that a pass looks at, which is the first one of the first round.
  void make();
  // Returns the replacement of a result that is read outside; nothing for other results.
  stablehlo::Value made(size_t round, size_t operation, size_t result);
  // Returns whether the operation stays outside of the loop, too.
  bool repeats(size_t operation) const { return !reads_.repeated.empty() && reads_.repeated[operation]; }

 private:
  // Where a result is in the loop's state.
  struct Kept {
    size_t first = 0, count = 0;  // the values of the latest rounds, the oldest first
    size_t stack = 0;             // one row a round; 0: none
    size_t from = 0;              // the stack's first row is this round's
    bool inputs = false;          // its rows are what the rounds begin with, not what they make
  };
  using Operation = stablehlo::Operation;
  using Value = stablehlo::Value;
  using Values = stablehlo::Values;

  const stablehlo::Type& type_of(RoundResult result) const {
    return plan_.operations[result.first].op->results[result.second].type();
  }
  void prepare();
  void keep(RoundResult result, size_t first_round);
  void convert_weights();
  void find_needed();
  bool is_reversed(const LoopSource& source) const;
  Value base_of(const LoopSource& source);
  Value row(Value stack, size_t number);
  Value row_of_round(Value stack, bool reversed);
  Values starts_of(const Moving& moving);
  Values starts(const Moving& moving, const Values& firsts);
  Values add(const Operation& op, const Values& operands, const Moving& moving, const Values& firsts,
             const std::unordered_map<int32_t, Value>& seen = {});
  bool is_part_in_zeros(size_t source) const;
  Value add_part(const RoundOperation& round, const Values& operands);
  Value value_of(size_t number);
  Values operation_in_body(size_t j);
  Values body(std::span<const Value> state);
  Values next_state();

  stablehlo::Rewriter& r_;
  const LoopPlan& plan_;
  bool layers_;
  OutsideReads reads_;
  std::map<RoundResult, Kept> kept_;
  std::vector<RoundResult> last_, stacked_;
  Values inits_, results_;
  std::vector<size_t> first_;  // [source]: its place in the state, if it is carried
  Values bases_;               // [source]
  Values converted_;           // [operation]: the weights of all rounds, converted; or nothing
  std::vector<bool> needed_;   // [operation]: in the body
  std::vector<Values> starts_, source_starts_;
  // These members are used while the body is made.
  Value round_;
  Values state_, values_;
  std::vector<Values> made_;
};

}  // namespace sluice::patterns
