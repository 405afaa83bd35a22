// What a slice's state means for a run on it.
#pragma once

#include <string>

namespace sluice::provision {

struct SliceView {
  enum Kind {
    kUp,        // usable
    kComing,    // on its way to be, without anybody's help
    kUnsteady,  // perhaps: it counts as down when it stays so
    kDown,      // there, and never usable again, with its name and quota still taken
    kGone,      // nothing of that name
  } kind = kGone;
  std::string state;   // as the service names it: "PREEMPTED", "SUSPENDED (queued resource)"
  std::string notice;  // of an end that is near: maintenance; empty: none
};

// As the services write them; empty: there is no such node, no such queue's entry.
struct SliceStates {
  std::string node, health, queued;
  double maintenance = 0;         // seconds since 1970 at which it may begin; 0: none
  bool maintenance_waits = true;  // until somebody has begun it (canReschedule)
};

// `now` in seconds since 1970; maintenance is near `notice_seconds` before its window.
SliceView view_slice(const SliceStates& states, double now, double notice_seconds);

}  // namespace sluice::provision
