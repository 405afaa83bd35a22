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
Verb compile_verb();
// `command`: what stood behind --.
Verb estimate_verb(std::vector<std::string> command);
// The process in which `compile` and `estimate` run libtpu; not for people.
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
// Of `sluice text`, with LibTorch.
Verb text_sample_verb();
Verb text_score_verb();
Verb top_verb();
Verb profile_verb();
Verb doctor_verb();
Verb completion_verb();
// Writes docs/flags.md; not for people.
Verb flags_page_verb();

// All of them, as the program has them. `command`: for estimate.
std::vector<Verb> all_verbs(std::vector<std::string> command);

}  // namespace sluice::cli
