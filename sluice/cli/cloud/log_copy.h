// --log-bucket of `sluice run`: a process beside the client copies the run's logs, and outlives it.
#pragma once

#include <functional>
#include <string>

#include "sluice/cli/verb.h"
#include "sluice/pod/job.h"

namespace sluice::cli {

// Does `run`, whose result it returns, with the copying beside it; waits for the last copy unless the job is
// detached. An empty bucket: only `run`. Throws Error, before anything starts, where the bucket cannot be
// written; logs that did not get there at the end make a 0 a 1.
int with_log_copy(const std::string& bucket, const pod::Job& job, const std::function<int()>& run);

// The process that copies; not for people.
Verb copy_logs_verb();

}  // namespace sluice::cli
