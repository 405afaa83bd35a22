// Host names: lists of them in Slurm's form, and addresses with a port.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::base {

// Expands "node[01-03,7],login1" to node01 node02 node03 node7 login1, in this order. Numbers keep their
// leading zeros, a name may have several brackets, white space around names is dropped. An IPv6 address may
// have brackets, "user@[fd00::2]", and loses them. Errors: an empty name, a bracket that is not closed, an
// invalid range, a port after an address, more than 100,000 hosts.
Result<std::vector<std::string>> expand_hostlist(std::string_view list);

// Returns "10.0.0.2:8476"; an IPv6 address gets brackets: "[fd00::2]:8476".
std::string host_and_port(std::string_view host, int port);

struct HostAndPort {
  std::string host;  // an IPv6 address without brackets
  int port = 0;      // 0: none is given
  bool operator==(const HostAndPort&) const = default;
};

// Splits "10.0.0.2:8476" and "[fd00::2]:8476", and without a port "name", "[fd00::2]" and "fd00::2". Errors:
// a port outside 1…65535, no host, brackets without an IPv6 address in them, and any other use of colons.
Result<HostAndPort> split_host_and_port(std::string_view address);

}  // namespace sluice::base
