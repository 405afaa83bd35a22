#include "sluice/patterns/loops/kept.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "sluice/stablehlo/builder/elementwise.h"

namespace sluice::patterns {
namespace {

using stablehlo::Operation;
using stablehlo::Value;
using Kind = LoopSource::Kind;

// A value counts as small if what is made of it has this many times its bytes.
constexpr size_t kSmall = 8;

// Returns whether the operation makes each element from few elements of its operands.
bool is_cheap(const Operation& op) {
  constexpr auto kOthers =
      std::to_array<std::string_view>({"chlo.erf", "stablehlo.bitcast_convert", "stablehlo.concatenate",
                                       "stablehlo.iota", "stablehlo.pad", "stablehlo.reverse"});
  return only_moves(op) || is_elementwise(op) || std::ranges::find(kOthers, op.name) != kOthers.end();
}

// Decides which operations stay outside of a loop, from the last one of a round to the first.
class Chooser {
 public:
  Chooser(const LoopPlan& plan, OutsideReads& reads) : plan_(plan), reads_(reads) {
    reads_.repeated.assign(plan.operations.size(), false);
    beside_.assign(plan.operations.size(), 0);
  }

  void choose() {
    for (size_t j = plan_.operations.size(); j-- > 0;) {
      const auto found = reads_.results.find({j, 0});
      if (found == reads_.results.end() || converts_weight(plan_, j)) continue;
      if (!reads_.repeated[j] && is_made_of_kept(j)) repeat(j, bytes(j));
      if (!reads_.repeated[j] && is_view(j)) repeat(j, 0);
      if (reads_.repeated[j]) read_operands(j, found->second.first, found->second.second);
    }
  }

 private:
  const Operation& operation(size_t j) const { return *plan_.operations[j].op; }
  static size_t bytes(Value v) { return v.type().bytes(); }
  size_t bytes(size_t j) const { return bytes(operation(j).results[0]); }
  bool is_kept(RoundResult result) const { return reads_.results.contains(result); }
  static bool is_small(Value v, size_t beside) { return bytes(v) * kSmall <= beside; }

  // Returns whether this is another form of a value that has no more bytes.
  bool is_view(size_t j) const {
    const Operation& op = operation(j);
    const bool moves = only_moves(op) && !op.is("stablehlo.slice");
    if (!moves || bytes(op.operands[0]) > bytes(j)) return false;
    return !is_far(plan_.sources[plan_.operations[j].operands[0]]);
  }

  // Values of two and more rounds before are not looked for.
  static bool is_far(const LoopSource& source) {
    return source.kind == Kind::kCarried && source.values.size() > 1;
  }

  void repeat(size_t j, size_t beside) {
    reads_.repeated[j] = true;
    beside_[j] = std::max(beside_[j], beside);
  }

  bool is_made_of_kept(size_t j) {
    visited_.assign(plan_.operations.size(), Answer::kNone);
    return can_make(j, bytes(j));
  }

  // Returns whether the operation can be repeated where a value of `beside` bytes is read.
  bool can_make(size_t j, size_t beside) {
    if (visited_[j] != Answer::kNone) return visited_[j] == Answer::kYes;
    const Operation& op = operation(j);
    bool can = is_cheap(op) && op.bodies.empty() && op.results.size() == 1 && bytes(j) <= kSmall * beside;
    for (size_t i = 0; i < plan_.operations[j].operands.size() && can; ++i) {
      const LoopSource& source = plan_.sources[plan_.operations[j].operands[i]];
      const RoundResult from{source.operation, source.result};
      if (source.kind == Kind::kCarried)
        can = !is_far(source) && (is_kept(from) || is_small(op.operands[i], beside));
      else if (source.kind == Kind::kInner)
        can = is_kept(from) || is_small(op.operands[i], beside) || converts_weight(plan_, from.first) ||
              can_make(from.first, beside);
    }
    visited_[j] = can ? Answer::kYes : Answer::kNo;
    return can;
  }

  // Notes what a repeated operation reads.
  void read_operands(size_t j, size_t first, size_t last) {
    for (size_t i = 0; i < plan_.operations[j].operands.size(); ++i) {
      const LoopSource& source = plan_.sources[plan_.operations[j].operands[i]];
      const RoundResult from{source.operation, source.result};
      if (source.kind == Kind::kCarried) {
        if (first == 0) reads_.initial.insert(from);
        if (last > 0) reads_.add(from, std::max<size_t>(first, 1) - 1, last - 1);
      } else if (source.kind == Kind::kInner) {
        const bool keeps = is_kept(from) || is_small(operation(j).operands[i], beside_[j]) ||
                           converts_weight(plan_, from.first);
        reads_.add(from, first, last);
        // A view is kept as what it is a view of.
        if (beside_[j] > 0 && (!keeps || reads_.repeated[from.first])) repeat(from.first, beside_[j]);
      }
    }
  }

  enum class Answer : uint8_t { kNone, kNo, kYes };
  const LoopPlan& plan_;
  OutsideReads& reads_;
  std::vector<Answer> visited_;  // [operation]
  // [operation]: the bytes of what is repeated with it; 0: it is a view of a kept value.
  std::vector<size_t> beside_;
};

}  // namespace

void OutsideReads::add(RoundResult result, size_t first, size_t last) {
  const auto [found, added] = results.try_emplace(result, first, last);
  if (added) return;
  found->second.first = std::min(found->second.first, first);
  found->second.second = std::max(found->second.second, last);
}

bool converts_weight(const LoopPlan& plan, size_t operation) {
  const RoundOperation& round = plan.operations[operation];
  return round.op->is("stablehlo.convert") && plan.sources[round.operands[0]].kind == Kind::kEach &&
         round.op->results[0].type().bytes() < round.op->operands[0].type().bytes();
}

void keep_less(const LoopPlan& plan, OutsideReads& reads) { Chooser(plan, reads).choose(); }

size_t best_begin(const Sequence& sequence, size_t begin, size_t end, size_t period, bool last) {
  const size_t rounds = (end - begin) / period, slack = (end - begin) % period;
  if (slack == 0) return begin;
  // The place of a value's last reader; kept values, which are read rounds later, do not count.
  std::map<RoundResult, size_t> read;
  for (size_t i = begin; i < end; ++i) {
    for (Value v : operands_of(sequence[i])) {
      const Sequence::Place place = sequence.place(v);
      const auto made = static_cast<size_t>(place.position);
      if (place.position >= 0 && made >= begin && i - made < 2 * period) read[{made, place.result}] = i;
    }
  }
  const size_t from = begin + rounds / 2 * period;
  std::vector<size_t> handed(slack + 1, 0);  // [place - from]: bytes
  for (const auto& [made, reader] : read) {
    const size_t bytes = sequence[made.first].results[made.second].type().bytes();
    for (size_t p = std::max(made.first + 1, from); p <= std::min(reader, from + slack); ++p)
      handed[p - from] += bytes;
  }
  size_t best = 0;
  for (size_t i = 1; i <= slack; ++i)
    if (handed[i] < handed[best] || (last && handed[i] == handed[best])) best = i;
  return begin + best;
}

}  // namespace sluice::patterns
