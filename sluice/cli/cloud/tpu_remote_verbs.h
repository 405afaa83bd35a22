// What is done on the workers of a TPU: verbs of the noun `tpu`.
#pragma once

#include <vector>

#include "sluice/cli/verb.h"

namespace sluice::cli {

// All of them, for the noun's list.
std::vector<Verb> tpu_remote_verbs();

// ssh, scp; ps, kill, guard.
std::vector<Verb> tpu_ssh_verbs();
std::vector<Verb> tpu_process_verbs();

}  // namespace sluice::cli
