// The processes that hold the chips of hosts, and the end of one's own: `sluice tpu ps | kill`, `sluice
// doctor --fix`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/pod/job.h"
#include "sluice/provision/remote/holders.h"

namespace sluice::cli {

// Hosts, and what they are called in tables and messages.
struct HolderHosts {
  std::string verb;  // "tpu kill": stands before messages
  std::string noun;  // "worker", "host"
  pod::Job job;
  std::vector<std::string> labels;  // [worker of the job]
};

// What runs on each host; nothing for one that did not answer, which is said on standard error.
std::vector<std::optional<provision::HostUse>> look_at_holders(const HolderHosts& hosts);

void print_holder_header(const HolderHosts& hosts);
void print_holder(const std::string& label, const provision::Holder& holder);

// Shows all holders, and ends those that are the user's own with SIGINT, SIGTERM and SIGKILL within `grace`
// seconds, if `may_end` says so. Returns the exit status: 1 where a host did not answer or something stays.
int end_own_holders(const HolderHosts& hosts, const std::function<bool(size_t count)>& may_end, int grace);

}  // namespace sluice::cli
