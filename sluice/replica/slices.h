// Several TPU slices that run one program: which slice a process belongs to, and words for it. Internal to
// this room.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/replica/placement.h"

namespace sluice::replica {

// Where processes of one host each meet: the firewall rule of Cloud TPU networks opens this port.
inline constexpr int kTpuMeetingPort = 8476;

// Reads the MEGASCALE variables, and the slice's type from TPU_ACCELERATOR_TYPE; one slice if none is set.
// Errors (kFailedPrecondition): one of them is missing, is not a number or does not name a host, or they
// contradict each other.
base::Result<SlicePlace> find_slice(const Getter& get);

// Returns the placement with its slice. `of_one_slice`: the placement counts only the processes of this
// slice, and is changed to count the processes of all slices. Errors (kFailedPrecondition): the processes
// cannot be divided among the slices, or this process has a number of another slice.
base::Result<Placement> in_slices(Placement placement, const SlicePlace& slice, bool of_one_slice);

// Returns the number of processes of a slice, and the slice of a process.
inline int processes_of_slice(const Placement& placement) {
  return placement.processes / placement.slice.count;
}
inline int slice_of(const Placement& placement, int process) {
  return process / processes_of_slice(placement);
}

// Returns "2 (10.0.0.4)", "2 (slice 1, worker 0, 10.0.0.4)", or "2" if nothing more is known.
std::string process_text(const Placement& placement, int process);
// Returns several of them: "processes 1 (a), 2 (b)"; with several slices "worker 1 of slice 0 (b), all 2
// workers of slice 1 (c, d)".
std::string processes_text(const Placement& placement, const std::vector<int>& processes);

// The line in which a process describes its slice to the others; "" for one slice.
std::string line_of(const SlicePlace& slice);
// Compares the line of process `other` with this process's slice. kFailedPrecondition names both processes,
// what differs and what to do.
base::Status check_line(const Placement& own, int other, const std::string& line);

}  // namespace sluice::replica
