// The verbs that start runs.
#pragma once

#include <vector>

#include "sluice/cli/verb.h"

namespace sluice::cli {

// `sluice tpu run NAME`: `sluice run --tpu NAME`.
Verb tpu_run_verb();

// The verbs of `sluice run` that find a run again.
std::vector<Verb> run_finders();

// --raw, of the verbs that show what workers write.
CLI::Option* add_raw(CLI::App& app, bool& raw);

}  // namespace sluice::cli
