// Finds the processes that hold the chips of hosts, and ends the user's own, for `sluice tpu ps | kill` and
// `sluice doctor --fix`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/pod/job.h"
#include "sluice/provision/remote/holders.h"

namespace sluice::cli {

// Hosts and their names in tables and messages.
struct HolderHosts {
  std::string verb;  // the prefix of messages, as "tpu kill"
  std::string noun;  // "worker" or "host"
  pod::Job job;
  std::vector<std::string> labels;  // [worker of the job]: its name
};

// Returns the use of each host; nullopt for a host that did not answer, as standard error reports.
std::vector<std::optional<provision::HostUse>> look_at_holders(const HolderHosts& hosts);

void print_holder_header(const HolderHosts& hosts);
void print_holder(const std::string& label, const provision::Holder& holder);

// Shows all holders and, if `may_end` agrees, ends the user's own with SIGINT, SIGTERM and SIGKILL within
// `grace` seconds. Returns the exit status: 1 if a host did not answer or a process stays, else 0.
int end_own_holders(const HolderHosts& hosts, const std::function<bool(size_t count)>& may_end, int grace);

}  // namespace sluice::cli
