// The environment of a worker, as Sluice, TPU runtimes, JAX and torchrun's programs expect it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sluice/pod/job.h"

namespace sluice::pod {

using Variables = std::vector<std::pair<std::string, std::string>>;

// Where the TPU runtimes of one process per chip listen on each host: from here on, one port a process.
inline constexpr int kTpuProcessPort = 8476;

// The variables of worker number `worker` in attempt number `attempt` (0 is the first), meeting on `port`,
// where only those come in that have the attempt's `key` (base::new_secret(); empty: they do not meet).
// docs/run.md has the table. TPU_* only on hosts and for one process per chip: else the processes of one
// machine share its chips, and nothing says how. The user's own come last and win; in their values {worker},
// {host} and {local} stand for the worker's number, its host's address and its number among those of its
// host.
Variables worker_environment(const Job& job, int worker, int attempt, int port, const std::string& key);

// "NAME=VALUE", or "NAME" for the client's own value. Errors: no name, a name that sh cannot have, a variable
// that is not set here.
base::Result<std::pair<std::string, std::string>> parse_variable(const std::string& text);

}  // namespace sluice::pod
