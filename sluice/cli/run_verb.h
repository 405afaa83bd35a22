// The verbs that start runs.
#pragma once

#include "sluice/cli/verb.h"

namespace sluice::cli {

// `sluice tpu run NAME`: `sluice run --tpu NAME`.
Verb tpu_run_verb();

}  // namespace sluice::cli
