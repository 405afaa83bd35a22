// What can be wrong with a machine, as its files tell: nothing is asked over a network, and nothing is
// changed.
#pragma once

#include <string>
#include <vector>

#include "sluice/monitor/doctor/finding.h"
#include "sluice/pjrt/machine/machine.h"

namespace sluice::monitor {

// The chips and GPUs, the rights to use them, who holds them, libtpu's lock, and which of this user's
// processes hold them although what started them is gone.
void check_chips(const pjrt::Machine& machine, const Report& report);
// The ports that TPU programs need: who has them. The metrics' ports are those of the environment.
void check_ports(const pjrt::Machine& machine, const Report& report);
// Free space where these folders are, or will be, and in /tmp and /dev/shm.
void check_disks(const std::vector<std::string>& folders, const Report& report);
// Open files, locked memory, huge pages.
void check_limits(const pjrt::Machine& machine, const Report& report);
// Variables of the environment that are set and that nothing reads.
void check_variables(const Report& report);

// The part that disks and memory file systems share: `free` bytes of `folder`, of which a little is a
// problem.
Finding disk_finding(const std::string& folder, unsigned long long free, bool is_memory);
// Processes that listen on a TCP port of this machine, as far as this user sees them; "" in the place of one
// that is not seen. Empty: nobody listens.
std::vector<std::string> listeners_of(int port);

}  // namespace sluice::monitor
