// The verbs that start runs.
#pragma once

#include <string>
#include <vector>

#include "sluice/cli/verb.h"

namespace sluice::cli {

// `sluice tpu run NAME`: `sluice run --tpu NAME`.
Verb tpu_run_verb();

// Throws what `sluice run --tpu TPU ARGUMENTS…` would say before it asks for the TPU: a flag that is unknown
// or has a wrong value, a folder or an archive that is not there. `arguments`: flags, --, the command.
void check_kept_run(const std::string& tpu, const std::vector<std::string>& arguments);

// The verbs of `sluice run` that find a run again.
std::vector<Verb> run_finders();

// --raw, of the verbs that show what workers write.
CLI::Option* add_raw(CLI::App& app, bool& raw);

}  // namespace sluice::cli
