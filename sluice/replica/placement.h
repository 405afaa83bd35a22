// Which process of how many this one is, and where they meet: read from the environment that a launcher made.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::replica {

struct Placement {
  int process_id = 0;       // of this process, in [0, processes)
  int processes = 1;        // of the whole run
  std::string coordinator;  // host:port on which process 0 listens and the others call
  std::string source;       // who said so: "sluice run", "Slurm", "Cloud TPU" or "torchrun"
  std::vector<std::string> hosts =
      {};  // of each process, for messages; empty where the launcher does not say
};

// A variable's value, or nothing when it is unset or empty (base::environment is one).
using Getter = std::function<std::optional<std::string>(const char* name)>;

// The first of these that the environment speaks of, or nothing (a single process):
//   sluice run  SLUICE_PROCESS_ID, SLUICE_PROCESS_COUNT, SLUICE_COORDINATOR_ADDRESS, SLUICE_PROCESS_HOSTS
//   Slurm       SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS, SLURM_STEP_NODELIST or
//               SLURM_JOB_NODELIST, SLURM_JOB_ID: the coordinator is the step's first host, on a port made of
//               the job's and the step's numbers, so that steps side by side do not meet
//   Cloud TPU   one process per chip: CLOUD_TPU_TASK_ID, TPU_PROCESS_ADDRESSES (host:port of every process):
//               the first host, the port two below the first process's (8474 beside the usual 8476), or lower
//               where a process has that one
//               one process per host: TPU_WORKER_ID, TPU_WORKER_HOSTNAMES: the first host, port 8476
//               A sentence in the place of a list, or TPU_PROCESS_ADDRESSES=local, is a single process:
//               Kaggle and Colab set these
//   torchrun    RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (the port behind it where torchrun itself listens
//               on that one)
// Errors (kFailedPrecondition): a set that is incomplete, or values that are no numbers or do not fit
// together (TPU_PROCESS_BOUNDS and TPU_PROCESS_PORT with the addresses, too); the message names the variable,
// what was found and what to do. A job script of Slurm, which runs once and not once for each task, is such
// an error when the job has several tasks.
base::Result<std::optional<Placement>> find_placement(const Getter& get);

// The number of this process among those of its host, from 0: counted in Placement::hosts, else what
// LOCAL_RANK or SLURM_LOCALID says, else 0.
int local_index(const Placement& placement, const Getter& get);

}  // namespace sluice::replica
