// The text that `sluice keep --dry-run` prints.
#pragma once

#include <string>
#include <vector>

#include "sluice/provision/remote/kept_slice.h"

namespace sluice::cli {

struct KeepPlan {
  provision::KeptStart start;
  provision::KeptSliceOptions options;
  provision::KeepLimits limits;
  std::string not_asked;                  // why the cloud was not asked which TPU exists; "": it was asked
  std::string project;                    // the project in the command line of the run
  std::vector<std::string> zones_of_any;  // with zones "any": the ones that have the type, if it was asked
  double now = 0;                         // seconds since 1970
};

// Describes the TPU that is used or created, the command on its workers, and when it is re-created. Each line
// ends with a newline.
std::string keep_plan_text(const KeepPlan& plan);

}  // namespace sluice::cli
