// Implements --log-bucket of `sluice run`: a second process copies the run's logs, and outlives the client.
#pragma once

#include <string>

#include "sluice/cli/verb.h"
#include "sluice/pod/job.h"

namespace sluice::cli {

// Gives the job an id and runs it; with `dry_run` prints its commands instead. Returns the exit status.
// Unless the bucket is empty, another process copies the logs into it; waits for the last copy unless the job
// is detached. Throws Error if the run cannot start, and, before anything starts, if the bucket cannot be
// written. Logs that cannot be copied are reported and don't change the result.
int run_or_describe(pod::Job& job, const std::string& log_bucket, bool dry_run);

// The verb of the copying process; hidden from users.
Verb copy_logs_verb();

}  // namespace sluice::cli
