// The environment variables of a worker for Sluice, TPU runtimes, JAX and torchrun's programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sluice/pod/job.h"

namespace sluice::pod {

using Variables = std::vector<std::pair<std::string, std::string>>;

// The first port on each host where the TPU runtimes of one process per chip listen, one port a process.
inline constexpr int kTpuProcessPort = 8476;

// The port on each host where libtpu's runtimes of several slices exchange data, one port a process.
inline constexpr int kSlicesPort = 8080;

// Returns the variables of worker number `worker` in attempt number `attempt` (0 is the first). The workers
// meet on `port`, which requires the attempt's `key` (base::new_secret(); empty: they do not meet).
// docs/run.md has the table. TPU_* are set only on hosts and for one process per chip: otherwise the
// processes of a machine share its chips, and no variable says how. With several slices, TPU_* describe the
// worker's slice, and MEGASCALE_* its place among the slices. The user's own come last and win; in
// their values {worker}, {host}, {local} and {slice} are replaced by the worker's number, its host's address,
// its number on its host and its slice.
Variables worker_environment(const Job& job, int worker, int attempt, int port, const std::string& key);

// Reads "NAME=VALUE", or "NAME" for the client's own value. Errors: no name, a name that sh cannot have, or a
// variable that is not set here.
base::Result<std::pair<std::string, std::string>> parse_variable(const std::string& text);

}  // namespace sluice::pod
