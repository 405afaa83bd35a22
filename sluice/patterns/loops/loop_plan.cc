#include "sluice/patterns/loops/loop_plan.h"

#include <algorithm>
#include <array>

#include "sluice/base/formats/hash.h"
#include "sluice/stablehlo/splat.h"

namespace sluice::patterns {
namespace {

using stablehlo::Dims;
using stablehlo::Operation;
using stablehlo::Value;
using stablehlo::Values;

// The largest number of rounds between the round that makes a value and a round that reads it.
constexpr size_t kFarthest = 8;
// Values that differ between rounds without a rule are gathered for a loop up to this total size. A rule for
// layers gathers the program's arguments, their weights, without a limit.
constexpr size_t kGatheredBytes = size_t{1} << 20;

// The number of places that must follow a rule so that it does not hold by chance.
constexpr size_t kEven = 8;

// Returns where a slice begins, or the padding in front of a value; nothing for other operations.
Dims start_of(const Operation& op) {
  if (op.is("stablehlo.slice")) return op.attributes.list("start_indices");
  if (!op.is("stablehlo.pad")) return {};
  Dims low = op.attributes.list("edge_padding_low");
  const bool cuts = std::any_of(low.begin(), low.end(), [](int64_t edge) { return edge < 0; });
  return cuts ? Dims() : low;
}

// Returns the rounds around `middle` for which `same` holds: same(k) compares the rounds k - 1 and k.
template <typename Same>
std::pair<size_t, size_t> around(size_t middle, size_t rounds, const Same& same) {
  size_t first = middle, last = middle + 1;
  while (first > 0 && same(first)) --first;
  while (last < rounds && same(last)) ++last;
  return {first, last};
}

}  // namespace

bool only_moves(const Operation& op) {
  constexpr std::array<std::string_view, 5> kMoves = {"stablehlo.reshape", "stablehlo.slice",
                                                      "stablehlo.transpose", "stablehlo.broadcast_in_dim",
                                                      "stablehlo.convert"};
  return std::find(kMoves.begin(), kMoves.end(), op.name) != kMoves.end();
}

bool Moving::moves() const {
  return !places.empty() || std::any_of(step.begin(), step.end(), [](int64_t s) { return s != 0; });
}

namespace {

// What all plans of a program start from.
struct Given {
  const stablehlo::Rewriter& r;
  const Sequence& sequence;
  const LoopRule& rule;
  const Repeated& repeated;
  const std::vector<bool>&taken, &awaited;
};

// Makes the plan of one loop.
class Plan {
 public:
  using Range = std::pair<size_t, size_t>;

  Plan(const Given& given, LoopPlan& to)
      : given_(given),
        r_(given.r),
        sequence_(given.sequence),
        taken_(given.taken),
        to_(to),
        good_(0, to.rounds),
        middle_(to.rounds / 2) {}

  // Returns false if at least one operand follows no rule. The rounds in good(), around the middle, may still
  // form a loop.
  bool make() {
    for (size_t j = 0; j < to_.period && enough(); ++j) {
      std::vector<Values> operands;
      std::vector<const Operation*> ops;
      for (size_t k = 0; k < to_.rounds; ++k) {
        ops.push_back(&sequence_[to_.begin + k * to_.period + j]);
        operands.push_back(operands_of(*ops.back()));
      }
      RoundOperation op{ops[0], {}, moving_of(ops)};
      for (size_t i = 0; i < operands[0].size() && enough(); ++i) {
        Values each;
        for (const Values& all : operands) each.push_back(all[i]);
        op.operands.push_back(source_of(std::move(each)));
      }
      if (enough() && sees_one_as_two(*ops[0], operands[0], op.operands)) narrow({1, to_.rounds});
      to_.operations.push_back(std::move(op));
    }
    return !failed_ && good_ == Range(0, to_.rounds);
  }
  Range good() const { return failed_ ? Range(0, 0) : good_; }

 private:
  static constexpr size_t kNone = ~size_t{0};

  bool enough() const { return !failed_ && good_.second - good_.first > 1; }
  size_t narrow(Range range) {
    good_ = {std::max(good_.first, range.first), std::min(good_.second, range.second)};
    if (good_.first >= good_.second) failed_ = true;
    return kNone;
  }
  size_t fail() {
    failed_ = true;
    return kNone;
  }

  // Returns whether one value that bodies see is two different values in later rounds.
  static bool sees_one_as_two(const Operation& op, const Values& operands,
                              const std::vector<size_t>& sources) {
    std::unordered_map<int32_t, size_t> source_of;
    for (size_t i = op.operands.size(); i < operands.size(); ++i)
      if (source_of.try_emplace(operands[i].id(), sources[i]).first->second != sources[i]) return true;
    return false;
  }

  Moving moving_of(const std::vector<const Operation*>& ops) {
    Moving moving{.first = start_of(*ops[0])};
    if (moving.first.empty()) return moving;
    std::vector<Dims> starts;
    for (const Operation* op : ops) starts.push_back(start_of(*op));
    const size_t from = std::min(middle_, to_.rounds - 2);
    for (size_t i = 0; i < moving.first.size(); ++i)
      moving.step.push_back(starts[from + 1][i] - starts[from][i]);
    const Range even = around(from, to_.rounds, [&](size_t k) {
      for (size_t i = 0; i < moving.step.size(); ++i)
        if (starts[k][i] - starts[k - 1][i] != moving.step[i]) return false;
      return true;
    });
    if (even == Range(0, to_.rounds) || even.second - even.first >= kEven)
      narrow(even);
    else
      moving.places = std::move(starts);
    return moving;
  }

  size_t source_of(Values each) {
    uint64_t hash = each.size();
    for (Value v : each) hash = base::mix_word(hash, static_cast<uint64_t>(v.id()));
    auto [found, last] = known_.equal_range(hash);
    for (; found != last; ++found)
      if (found->second.first == each) return found->second.second;
    const size_t made = is_inside(each[middle_]) ? of_rounds(each) : from_outside(each);
    if (made != kNone) known_.emplace(hash, std::pair(std::move(each), made));
    return made;
  }

  size_t add(LoopSource source) {
    to_.sources.push_back(std::move(source));
    return to_.sources.size() - 1;
  }

  bool is_inside(Value v) const {
    const int32_t position = sequence_.place(v).position;
    return position >= 0 && static_cast<size_t>(position) >= to_.begin &&
           static_cast<size_t>(position) < to_.end();
  }

  // Finds a result of the same round, or of an earlier one.
  size_t of_rounds(const Values& each) {
    const auto place = [&](size_t k) { return sequence_.place(each[k]); };
    const auto offset = [&](size_t k) { return static_cast<size_t>(place(k).position) - to_.begin; };
    const size_t round = offset(middle_) / to_.period, operation = offset(middle_) % to_.period;
    const uint32_t result = place(middle_).result;
    const size_t distance = middle_ - round;
    if (round > middle_ || distance > kFarthest) return fail();
    const auto follows = [&](size_t k) {
      return k >= distance && is_inside(each[k]) && place(k).result == result &&
             offset(k) == (k - distance) * to_.period + operation;
    };
    Range range =
        around(middle_, to_.rounds, [&](size_t k) { return k <= middle_ ? follows(k - 1) : follows(k); });
    // The first rounds take values from before the loop.
    if (range.first == distance && std::none_of(each.begin(), each.begin() + static_cast<int64_t>(distance),
                                                [&](Value v) { return is_inside(v); }))
      range.first = 0;
    if (range != Range(0, to_.rounds)) return narrow(range);
    LoopSource source{.kind = distance == 0 ? LoopSource::Kind::kInner : LoopSource::Kind::kCarried};
    source.operation = operation;
    source.result = result;
    source.values.assign(each.begin(), each.begin() + static_cast<int64_t>(distance));
    return add(std::move(source));
  }

  size_t from_outside(const Values& each) {
    const Range outside = around(middle_, to_.rounds,
                                 [&](size_t k) { return !is_inside(k <= middle_ ? each[k - 1] : each[k]); });
    if (outside != Range(0, to_.rounds)) return narrow(outside);
    const Range same = around(middle_, to_.rounds, [&](size_t k) { return each[k] == each[k - 1]; });
    if (same == outside) return add({.kind = LoopSource::Kind::kSame, .values = {each[0]}});
    // The results of a loop that was found before this one are known only after that loop is made.
    for (Value v : each)
      if (const int32_t at = sequence_.place(v).position; at >= 0 && taken_[static_cast<size_t>(at)])
        return fail();
    for (const auto kind : {&Plan::number, &Plan::moved}) {
      const size_t made = (this->*kind)(each);
      if (made != kNone || failed_ || good_ != outside) return made;
    }
    for (Value v : each)
      if (const int32_t at = sequence_.place(v).position; at >= 0 && given_.awaited[static_cast<size_t>(at)])
        return fail();
    if (!given_.rule.layers() || !are_arguments(each)) {
      const size_t bytes = each[0].type().bytes() * each.size();
      if (gathered_ + bytes > kGatheredBytes) return narrow(same);
      gathered_ += bytes;
    }
    return add({.kind = LoopSource::Kind::kEach, .values = each});
  }

  bool are_arguments(const Values& each) const {
    return std::all_of(each.begin(), each.end(), [&](Value v) { return r_.parameter(v) >= 0; });
  }

  // Finds integers that grow or fall evenly.
  size_t number(const Values& each) {
    std::vector<int64_t> numbers;
    for (Value v : each) {
      const Operation* const op = r_.maker(v);
      const auto found = op == nullptr ? std::nullopt : integer_of(*op);
      if (!found) return kNone;
      numbers.push_back(*found);
    }
    const size_t from = std::min(middle_, to_.rounds - 2);
    const auto step_to = [&](size_t k) {  // the difference may wrap around, as the program's addition does
      return static_cast<int64_t>(static_cast<uint64_t>(numbers[k]) - static_cast<uint64_t>(numbers[k - 1]));
    };
    const int64_t step = step_to(from + 1);
    const Range even = around(from, to_.rounds, [&](size_t k) { return step_to(k) == step; });
    if (even != Range(0, to_.rounds)) return even.second - even.first >= kEven ? narrow(even) : kNone;
    return add({.kind = LoopSource::Kind::kNumber, .values = {each[0]}, .first = numbers[0], .step = step});
  }

  // Finds values that equal operations before the loop only move: each round repeats the move itself.
  size_t moved(const Values& each) {
    std::vector<const Operation*> ops;
    std::vector<Values> operands;
    const auto symbol = [&](Value v) {
      const int32_t position = sequence_.place(v).position;
      return position < 0 ? ~uint32_t{0} : sequence_.symbols()[static_cast<size_t>(position)];
    };
    for (Value v : each) {
      const Operation* const op = r_.maker(v);
      const bool repeats = op != nullptr && (only_moves(*op) || given_.repeated.contains(v.id()));
      if (!repeats || symbol(v) != symbol(each[0])) return kNone;
      ops.push_back(op);
    }
    LoopSource source{.kind = LoopSource::Kind::kMoved, .op = ops[0], .moving = moving_of(ops)};
    for (size_t i = 0; i < ops[0]->operands.size() && enough(); ++i) {
      Values one;
      for (const Operation* op : ops) one.push_back(op->operands[i]);
      source.operands.push_back(source_of(std::move(one)));
    }
    if (failed_ || good_ != Range(0, to_.rounds)) return kNone;
    return add(std::move(source));
  }

  const Given& given_;
  const stablehlo::Rewriter& r_;
  const Sequence& sequence_;
  const std::vector<bool>& taken_;
  LoopPlan& to_;
  Range good_;
  size_t middle_;
  bool failed_ = false;
  size_t gathered_ = 0;  // bytes
  std::unordered_multimap<uint64_t, std::pair<Values, size_t>> known_;
};

}  // namespace

std::optional<LoopPlan> LoopPlanner::plan(size_t begin, size_t period, size_t rounds, Range& whole) const {
  LoopPlan made{.begin = begin, .period = period, .rounds = rounds};
  const Given given{r_, sequence_, rule_, repeated_, taken_, awaited_};
  Plan plan(given, made);
  whole = {0, rounds};
  if (plan.make()) {
    const bool carries = std::any_of(made.sources.begin(), made.sources.end(), [](const LoopSource& source) {
      return source.kind == LoopSource::Kind::kCarried;
    });
    if (carries) return made;
    whole = {0, 0};
    return std::nullopt;
  }
  whole = plan.good();
  return std::nullopt;
}

void LoopPlanner::await(size_t begin, size_t end) {
  std::fill(awaited_.begin() + static_cast<int64_t>(begin), awaited_.begin() + static_cast<int64_t>(end),
            true);
}

void LoopPlanner::add(size_t begin, size_t period, size_t rounds) {
  const size_t end = begin + period * rounds;
  std::fill(awaited_.begin() + static_cast<int64_t>(begin), awaited_.begin() + static_cast<int64_t>(end),
            false);
  // Skips operations that belong to other loops.
  while (begin < end && taken_[begin]) ++begin;
  size_t free = begin;
  while (free < end && !taken_[free]) ++free;
  rounds = (free - begin) / period;
  if (!rule_.holds(period, rounds)) return;
  Range good;
  if (auto made = plan(begin, period, rounds, good)) {
    std::fill(taken_.begin() + static_cast<int64_t>(made->begin),
              taken_.begin() + static_cast<int64_t>(made->end()), true);
    loops_.push_back(std::move(*made));
    return;
  }
  if (good == Range(0, 0)) return;
  add(begin, period, good.first);
  if (good != Range(0, rounds)) add(begin + good.first * period, period, good.second - good.first);
  add(begin + good.second * period, period, rounds - good.second);
}

}  // namespace sluice::patterns
