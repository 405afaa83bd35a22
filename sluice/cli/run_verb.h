// The verbs that start runs.
#pragma once

#include <string>
#include <vector>

#include "sluice/cli/verb.h"

namespace sluice::cli {

// Returns `sluice tpu run NAME`, which is `sluice run --tpu NAME`.
Verb tpu_run_verb();

// Throws the errors that `sluice run --tpu TPU ARGUMENTS…` reports before it asks for the TPU: a flag that is
// unknown or has a wrong value, a missing folder or archive. `arguments`: flags, --, the command.
void check_kept_run(const std::string& tpu, const std::vector<std::string>& arguments);

// Returns the verbs of `sluice run` that find a run again.
std::vector<Verb> run_finders();

// Adds --raw, for the verbs that show the workers' output.
CLI::Option* add_raw(CLI::App& app, bool& raw);

}  // namespace sluice::cli
