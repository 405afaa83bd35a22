// Converts a job to the file of another engine: Slurm's batch script, or a JobSet for Kubernetes on GKE. The
// engine then places, restarts and ends the workers, which read their places from its variables.
#pragma once

#include <string>

#include "sluice/base/result.h"
#include "sluice/estimate/tpu_slice.h"
#include "sluice/pod/job.h"

namespace sluice::pod {

// Returns a script for sbatch: the job's command on `per_host` tasks of each of `nodes` nodes. It uses the
// job's command, environment, folder, set-up, restarts and join time-out. kInvalidArgument: an invalid name
// (valid_engine_name), or a variable with {worker}, {host} or {local}.
base::Result<std::string> sbatch_script(const Job& job, const std::string& name, int nodes, int per_host);

// How Kueue, if the cluster has it, queues a JobSet: its LocalQueue, and a WorkloadPriorityClass of the
// cluster. Empty: not used.
struct QueueLabels {
  std::string name, priority;
};

// Returns the manifest of a JobSet (jobset.x-k8s.io/v1alpha2), as YAML: one pod on each host of the slice, or
// of several slices, with all of the host's chips. kInvalidArgument as above, for a text that is not UTF-8,
// for a generation that GKE does not have, for several slices of one host, and for a queue or priority that
// is not a valid name in Kubernetes.
base::Result<std::string> jobset_manifest(const Job& job, const std::string& name,
                                          const estimate::TpuSlice& slice, const std::string& image,
                                          const QueueLabels& queue = {});

}  // namespace sluice::pod
