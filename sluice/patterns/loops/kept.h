// Which results of a loop's rounds are kept for readers outside of the loop. Internal to this room.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sluice/patterns/loops/loop_plan.h"

namespace sluice::patterns {

// A result of a round: the operation's place in the round, and which of its results.
using RoundResult = std::pair<size_t, size_t>;

// What is read outside of a loop.
struct OutsideReads {
  std::map<RoundResult, std::pair<size_t, size_t>>
      results;  // the first and the last round that it is read of
  // Results whose value before the first round is read after the loop, too.
  std::set<RoundResult> initial;
  std::vector<bool> repeated;  // [operation]: it stays outside, too, and reads kept results there

  void add(RoundResult result, size_t first, size_t last);
};

// Returns whether the operation makes a weight of each round smaller by a conversion. Such weights are
// converted before the loop.
bool converts_weight(const LoopPlan& plan, size_t operation);

// Keeps less: what only moves elements of other results, or is made of kept, small or outside values element
// by element, is computed where it is read. So a mask of dropout is computed from its key, and several
// views of a result are kept once.
void keep_less(const LoopPlan& plan, OutsideReads& reads);

// Returns where the rounds of a repeat begin best: where the fewest bytes are handed on from round to round,
// as between two layers. If several places are equal, it is the first or the last one: the rounds of a
// forward pass that begin at its first place belong to the rounds of a backward pass that begin at its last.
size_t best_begin(const Sequence& sequence, size_t begin, size_t end, size_t period, bool last);

}  // namespace sluice::patterns
