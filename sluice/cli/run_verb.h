// The verbs that start runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/flags/flag.h"
#include "sluice/cli/verb.h"

namespace sluice::cli {

// Returns `sluice tpu run NAME`, which is `sluice run --tpu NAME`.
Verb tpu_run_verb();

// Throws the errors that `sluice run --tpu TPU ARGUMENTS…` reports before it asks for the TPU: a flag that is
// unknown or has a wrong value, a missing folder or archive. `arguments`: flags, --, the command.
void check_kept_run(const std::string& tpu, const std::vector<std::string>& arguments);

// Returns the verbs of `sluice run` that find a run again.
std::vector<Verb> run_finders();

// The row of --raw, for the verbs that show the workers' output.
Flag raw_row(bool& raw, const char* group = "");
// The rows of --worker and --follow, for the verbs that print what workers wrote.
Flag one_worker_row(std::optional<int>& worker);
Flag follow_row(bool& follow);

}  // namespace sluice::cli
