// Collectives inside an operation's program, for the rows of collective.cc and for statistics over all
// replicas.
#pragma once

#include "sluice/ops/emit.h"

namespace sluice::ops {

enum class Reduction : uint8_t { kSum, kMean, kMax, kMin };

// Reduces each value over the replicas of its group; `groups` lists the groups' global replica numbers one
// after the other, `group_size` of them each, or is empty for one group of all replicas. The mean is for
// floating-point types.
Values all_reduce(Emit& e, const Values& values, Reduction reduction, const Dims& groups = {},
                  int64_t group_size = 0);

}  // namespace sluice::ops
