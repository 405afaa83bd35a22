// What the verbs under `sluice run` do. Each returns the exit status; errors are the caller's to show.
#pragma once

#include <optional>
#include <string>

#include "sluice/base/result.h"
#include "sluice/pod/job.h"

namespace sluice::pod {

// Runs the job to its end, or, when it is detached, until all workers run.
base::Result<int> run_job(Job job);

// Shows a run's output from now on and ends with its status. Where its client is gone, this process becomes
// the client. Ctrl-C ends the run. `raw`: the workers' bytes as they are, also below.
base::Result<int> attach_run(const std::string& name, bool raw);
// Ends a run: SIGINT for its workers first.
base::Result<int> stop_run(const std::string& name);
// Prints what the workers wrote: all merged, or one of them, and with `follow` what they write until the end.
base::Result<int> show_logs(const std::string& name, std::optional<int> worker, bool follow, bool raw);
// Prints all runs, the latest first.
base::Result<int> show_runs(bool json);

}  // namespace sluice::pod
