// The verbs of the noun `tpu` that act on the workers of a TPU.
#pragma once

#include <vector>

#include "sluice/cli/verb.h"

namespace sluice::cli {

// Returns all of them, for the noun's list.
std::vector<Verb> tpu_remote_verbs();

// Return the verbs ssh and scp, and ps, kill and guard.
std::vector<Verb> tpu_ssh_verbs();
std::vector<Verb> tpu_process_verbs();

}  // namespace sluice::cli
