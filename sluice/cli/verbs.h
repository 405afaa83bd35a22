// The verbs of the program, one file each.
#pragma once

#include <string>
#include <vector>

#include "sluice/cli/verb.h"

namespace sluice::cli {

Verb train_verb();
Verb export_verb();
Verb mlflow_verb();
Verb bench_verb();
// `command`: the words after --.
Verb compile_verb(std::vector<std::string> command);
Verb estimate_verb(std::vector<std::string> command);
// The process in which `compile` and `estimate` run libtpu; not shown to users.
Verb compile_worker_verb();
Verb devices_verb();
Verb run_verb();
Verb keep_verb();
Verb task_verb();
Verb env_verb();
Verb tpu_verb();
Verb cost_verb();
Verb sweep_verb();
Verb data_verb();
Verb text_verb();
// Verbs of `sluice text` that need LibTorch.
Verb text_sample_verb();
Verb text_score_verb();
Verb top_verb();
Verb profile_verb();
Verb doctor_verb();
Verb completion_verb();
// Writes docs/flags.md; not shown to users.
Verb flags_page_verb();

// Returns all verbs of the program. `command`: for compile and estimate.
std::vector<Verb> all_verbs(std::vector<std::string> command);

}  // namespace sluice::cli
