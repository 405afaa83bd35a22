// Host names: lists of them in Slurm's form, and addresses with a port.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::base {

// "node[01-03,7],login1" -> node01 node02 node03 node7 login1, in this order. Numbers keep their leading
// zeros, a name may have several brackets, white space around names is dropped. Errors: an empty name, a
// bracket that is not closed, a range that is none, more than 100,000 hosts.
Result<std::vector<std::string>> expand_hostlist(std::string_view list);

// "10.0.0.2:8476"; an IPv6 address gets brackets: "[fd00::2]:8476".
std::string host_and_port(std::string_view host, int port);

}  // namespace sluice::base
