// A job as the file with which another engine runs it: Slurm's batch script, or a JobSet for Kubernetes on
// GKE. The engine then places, restarts and ends the workers; they find their places by what it tells them.
#pragma once

#include <string>

#include "sluice/base/result.h"
#include "sluice/estimate/tpu_slice.h"
#include "sluice/pod/job.h"

namespace sluice::pod {

// A script for sbatch: the job's command on `per_host` tasks of each of `nodes` nodes. Of the job it takes
// the command, the environment, the folder, the set-up, the restarts and the join time-out. kInvalidArgument:
// a name that is none (valid_engine_name), or a variable with {worker}, {host} or {local}.
base::Result<std::string> sbatch_script(const Job& job, const std::string& name, int nodes, int per_host);

// Where Kueue, if the cluster has it, lets a JobSet wait: its LocalQueue, and a WorkloadPriorityClass of the
// cluster. Empty: none.
struct QueueLabels {
  std::string name, priority;
};

// The manifest of a JobSet (jobset.x-k8s.io/v1alpha2), as YAML: one pod on each host of the slice, with all
// of the host's chips. kInvalidArgument as above, for a text that is no UTF-8, for a generation that GKE does
// not have, and for a queue or priority that cannot be a name in Kubernetes.
base::Result<std::string> jobset_manifest(const Job& job, const std::string& name,
                                          const estimate::TpuSlice& slice, const std::string& image,
                                          const QueueLabels& queue = {});

}  // namespace sluice::pod
