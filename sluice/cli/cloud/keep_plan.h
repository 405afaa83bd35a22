// What `sluice keep --dry-run` prints.
#pragma once

#include <string>
#include <vector>

#include "sluice/provision/remote/kept_slice.h"

namespace sluice::cli {

struct KeepPlan {
  provision::KeptStart start;
  provision::KeptSliceOptions options;
  provision::KeepLimits limits;
  std::string not_asked;                  // why nobody was asked what is there; "": it was asked
  std::string project;                    // of the run's line
  std::vector<std::string> zones_of_any;  // that have the type, where the wish says "any" and it was asked
  double now = 0;                         // seconds since 1970
};

// The TPU that is taken or made, the command on its workers, and when it is made again; lines that end.
std::string keep_plan_text(const KeepPlan& plan);

}  // namespace sluice::cli
