// The commands under `sluice run`. Each returns the exit status; the caller shows errors.
#pragma once

#include <optional>
#include <string>

#include "sluice/base/result.h"
#include "sluice/pod/job.h"

namespace sluice::pod {

// Runs the job to its end or, if it is detached, until all workers run.
base::Result<int> run_job(Job job);

// Shows a run's output from now on and ends with its status. If its client is gone, this process becomes the
// client. Ctrl-C ends the run. `raw`, also below: the workers' bytes unchanged.
base::Result<int> attach_run(const std::string& name, bool raw);
// Ends a run: sends its workers SIGINT first.
base::Result<int> stop_run(const std::string& name);
// Prints the output of all workers, merged, or of one; with `follow` also new output until the end.
base::Result<int> show_logs(const std::string& name, std::optional<int> worker, bool follow, bool raw);
// Prints all runs, the latest first.
base::Result<int> show_runs(bool json);

}  // namespace sluice::pod
