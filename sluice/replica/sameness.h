// Marks values that came from the host as equal on all replicas of all processes.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "sluice/replica/processes.h"

namespace sluice::replica {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// With several processes, a value that came from the host may differ between them. Compares such values of
// the tensors between the processes by a checksum, and marks them as global; with `from_leader` process 0's
// values are sent to all instead. Called by all processes with the same names. Throws kFailedPrecondition for
// a value that already differs between replicas (naming the tensor and the operation where that began), or
// between processes. `processes`: null for a single process. Cuts and waits.
void make_global(Processes* processes, const NamedTensors& tensors, bool from_leader);

}  // namespace sluice::replica
