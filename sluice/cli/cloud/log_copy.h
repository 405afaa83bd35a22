// Implements --log-bucket of `sluice run`: a second process copies the run's logs, and outlives the client.
#pragma once

#include <functional>
#include <string>

#include "sluice/cli/verb.h"
#include "sluice/pod/job.h"

namespace sluice::cli {

// Runs `run` while another process copies the logs, and returns `run`'s result. Waits for the last copy
// unless the job is detached. With an empty bucket it only runs `run`. Throws Error, before anything starts,
// if the bucket cannot be written. Logs that cannot be copied are reported and don't change the result.
int with_log_copy(const std::string& bucket, const pod::Job& job, const std::function<int()>& run);

// The verb of the copying process; hidden from users.
Verb copy_logs_verb();

}  // namespace sluice::cli
