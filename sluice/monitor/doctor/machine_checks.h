// Checks a machine by its files: nothing is asked over a network, and nothing is changed.
#pragma once

#include <string>
#include <vector>

#include "sluice/monitor/doctor/finding.h"
#include "sluice/pjrt/machine/machine.h"

namespace sluice::monitor {

// Checks the chips and GPUs, the rights to use them, their holders, libtpu's lock, and whether this user's
// processes still hold them although the program that started them is gone.
void check_chips(const pjrt::Machine& machine, const Report& report);
// Checks which processes have the ports that TPU programs need. The environment names the metrics' ports.
void check_ports(const pjrt::Machine& machine, const Report& report);
// Checks the free space in these folders (which need not exist yet), and in /tmp and /dev/shm.
void check_disks(const std::vector<std::string>& folders, const Report& report);
// Checks the limits of open files, locked memory and huge pages.
void check_limits(const pjrt::Machine& machine, const Report& report);
// Finds environment variables that are set although nothing reads them.
void check_variables(const Report& report);

// Returns the finding for `free` bytes in `folder`, on a disk or a memory file system; too few are a problem.
Finding disk_finding(const std::string& folder, unsigned long long free, bool is_memory);
// Returns the processes that listen on a TCP port of this machine; "" for one that this user cannot see.
// Empty: no process listens.
std::vector<std::string> listeners_of(int port);

}  // namespace sluice::monitor
