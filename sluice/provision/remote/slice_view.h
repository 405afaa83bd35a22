// The meaning of a slice's state for a run on it.
#pragma once

#include <string>
#include <vector>

namespace sluice::provision {

struct SliceView {
  enum Kind {
    kUp,        // usable
    kComing,    // becomes usable without help
    kUnsteady,  // may recover; counts as down if it stays so
    kDown,      // exists but is never usable again; still holds its name and quota
    kGone,      // nothing has that name
  } kind = kGone;
  std::string state;             // in the service's words: "PREEMPTED", "SUSPENDED (queued resource)"
  std::string notice;            // of maintenance that ends the slice soon; empty: none
  int slices = 1;                // that belong together
  std::vector<int> usable = {};  // the numbers of READY and healthy slices
};

// The states as the services write them; empty: there is no such node or queue entry.
struct SliceStates {
  std::string node, health, queued;
  double maintenance = 0;         // seconds since 1970 when it may begin; 0: none
  bool maintenance_waits = true;  // it begins only when somebody starts it (canReschedule)
  std::string which = {};         // the node of several slices: "slice 1 of 2, train-1"; empty: there is one
};

// `now`: seconds since 1970. Maintenance is near `notice_seconds` before its window.
SliceView view_slice(const SliceStates& states, double now, double notice_seconds);

}  // namespace sluice::provision
