// The place of this process in the run and where the processes meet, from the launcher's environment
// variables.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::replica {

// The place of a process among TPU slices whose devices run one program.
struct SlicePlace {
  int index = 0, count = 1;  // of this process's slice, and of all slices
  std::string coordinator;   // the host[:port] where libtpu's runtimes meet; "" for one slice
  std::string type;          // the slice's type as the environment names it, "v5p-32"; "": unknown
};

struct Placement {
  int process_id = 0;       // of this process, in [0, processes)
  int processes = 1;        // of the whole run
  std::string coordinator;  // host:port where process 0 listens and the others connect
  std::string source;       // the launcher: "sluice run", "Slurm", "Cloud TPU" or "torchrun"
  // One for each process, for messages; empty if unknown. With several slices, "" for other slices' processes
  // if the launcher names only this slice's hosts.
  std::vector<std::string> hosts = {};
  SlicePlace slice = {};
};

// Returns a variable's value, or nothing if it is unset or empty (base::environment is one).
using Getter = std::function<std::optional<std::string>(const char* name)>;

// Returns the placement by the first of these launchers whose variables are set, or nothing (a single
// process):
//   sluice run  SLUICE_PROCESS_ID, SLUICE_PROCESS_COUNT, SLUICE_COORDINATOR_ADDRESS, SLUICE_PROCESS_HOSTS
//   Slurm       SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS, SLURM_STEP_NODELIST or
//               SLURM_JOB_NODELIST, SLURM_JOB_ID: the coordinator is the step's first host, on a port made of
//               the job's and the step's numbers, so that simultaneous steps do not meet
//   Cloud TPU   one process per chip: CLOUD_TPU_TASK_ID, TPU_PROCESS_ADDRESSES (host:port of every process):
//               the first host, the port two below the first process's (8474 if that has the usual 8476), or
//               lower if a process has that port
//               one process per host: TPU_WORKER_ID, TPU_WORKER_HOSTNAMES: the first host, port 8476
//               A sentence in place of a list, or TPU_PROCESS_ADDRESSES=local, is a single process:
//               Kaggle and Colab set these
//   torchrun    RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (the next port if torchrun itself listens there)
// Several TPU slices: MEGASCALE_NUM_SLICES, MEGASCALE_SLICE_ID and MEGASCALE_COORDINATOR_ADDRESS. Cloud TPU's
// variables then count the processes of one slice, and the processes of the run are numbered slice by slice;
// they meet at the coordinator's host. Other launchers count all processes, also slice by slice.
// Errors (kFailedPrecondition): an incomplete set, or values that are no numbers or do not fit together
// (including TPU_PROCESS_BOUNDS and TPU_PROCESS_PORT with the addresses); the message names the variable,
// what was found and what to do. A Slurm job script, which runs once and not once for each task, is such an
// error if the job has several tasks; so are MEGASCALE variables that do not fit the process's number.
base::Result<std::optional<Placement>> find_placement(const Getter& get);

// Returns the number of this process on its host, from 0: counted in Placement::hosts, else LOCAL_RANK or
// SLURM_LOCALID, else 0.
int local_index(const Placement& placement, const Getter& get);

}  // namespace sluice::replica
