// Finds rounds of operations that are equal except for places that move from round to round: the material of
// a loop. Internal to this room.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sluice/patterns/patterns.h"
#include "sluice/stablehlo/rewriter.h"

namespace sluice::patterns {

// Main's operations in order, without constants, which may come anywhere before their readers.
class Sequence {
 public:
  // The rewriter must have no composites, and must not change while this is in use.
  explicit Sequence(const stablehlo::Rewriter& r);

  // The origin of a value. position: the index of its operation in the sequence; -1 for parameters and
  // constants.
  struct Place {
    int32_t position = -1;
    uint32_t result = 0;
    bool operator==(const Place&) const = default;
  };
  Place place(stablehlo::Value v) const {
    const auto id = static_cast<size_t>(v.id());
    return id < places_.size() ? places_[id] : Place();
  }
  size_t size() const { return operations_.size(); }
  const stablehlo::Operation& operator[](size_t position) const { return *operations_[position]; }
  // Operations with the same symbol differ only in their operands and in places that may move. An operation
  // that must not be in a loop has a symbol of its own.
  std::span<const uint32_t> symbols() const { return symbols_; }

 private:
  std::vector<const stablehlo::Operation*> operations_;
  std::vector<uint32_t> symbols_;
  std::vector<Place> places_;  // [value's id]
};

// Returns whether the operation only moves or copies elements, or converts them: it costs nothing to repeat.
bool only_moves(const stablehlo::Operation& op);

// Returns the operands of an operation, followed by the outside values that its bodies read.
stablehlo::Values operands_of(const stablehlo::Operation& op);

// Where a round's slice or padding begins: first + round * step, or places[round] if there is no rule.
struct Moving {
  stablehlo::Dims first = {}, step = {};
  std::vector<stablehlo::Dims> places = {};
  bool moves() const;
};

// The origin of an operand in each of the rounds.
struct LoopSource {
  enum class Kind : uint8_t {
    kSame,     // values[0]
    kNumber,   // integers, all elements alike: first + round * step
    kInner,    // a result of the round
    kCarried,  // a result of an earlier round, values.size() rounds back; the first rounds take `values`
    kMoved,    // the result of an operation outside, which each round repeats itself
    kEach,     // values[round]
  };
  Kind kind;
  stablehlo::Values values = {};
  int64_t first = 0, step = 0;               // kNumber
  size_t operation = 0, result = 0;          // kInner, kCarried
  const stablehlo::Operation* op = nullptr;  // kMoved: the operation of the first round
  std::vector<size_t> operands = {};         // kMoved: sources, all before this one
  Moving moving = {};                        // kMoved
};

struct RoundOperation {
  const stablehlo::Operation* op;  // the operation of the first round
  std::vector<size_t> operands;    // sources, in the order of operands_of()
  Moving moving;
};

// Rounds [0, rounds) of `period` operations each, from position `begin` on.
struct LoopPlan {
  size_t begin = 0, period = 0, rounds = 0;
  std::vector<LoopSource> sources = {};
  std::vector<RoundOperation> operations = {};
  size_t end() const { return begin + period * rounds; }
};

// The ids of values outside of loops that loops make again instead of reading them.
using Repeated = std::unordered_set<int32_t>;

// Finds the sources of the operands of equal rounds.
class LoopPlanner {
 public:
  LoopPlanner(const stablehlo::Rewriter& r, const Sequence& sequence, const LoopRule& rule,
              const Repeated& repeated)
      : r_(r),
        sequence_(sequence),
        rule_(rule),
        repeated_(repeated),
        taken_(sequence.size(), false),
        awaited_(sequence.size(), false) {}

  // Says that these operations may become a loop later. Until add() is called for them, layers that gather
  // their results stay as they are, to read the loop's stacks afterwards.
  void await(size_t begin, size_t end);

  // Adds the loops among these rounds; over all calls, no operation becomes part of two loops. Adds one loop,
  // several if something changes between two rounds, or none if no value is carried from round to round.
  void add(size_t begin, size_t period, size_t rounds);
  const std::vector<LoopPlan>& loops() const { return loops_; }

 private:
  using Range = std::pair<size_t, size_t>;
  // Returns a loop of all these rounds; else sets `whole` to the rounds around the middle that may be one.
  std::optional<LoopPlan> plan(size_t begin, size_t period, size_t rounds, Range& whole) const;

  const stablehlo::Rewriter& r_;
  const Sequence& sequence_;
  const LoopRule& rule_;
  const Repeated& repeated_;
  std::vector<bool> taken_, awaited_;  // [position]
  std::vector<LoopPlan> loops_;
};

}  // namespace sluice::patterns
