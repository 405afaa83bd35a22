// The plugins: found where, of which version, and whether this program can use them.
#pragma once

#include <string>
#include <vector>

#include "sluice/monitor/doctor/finding.h"
#include "sluice/pjrt/machine/machine.h"

namespace sluice::monitor {

// The plugin for what the machine has, and the CPU's. `probe` is a command that is given the path of a
// plugin, and prints the version of its API, "0.116": a process of its own, because libtpu may end the one
// that loads it.
void check_plugins(const pjrt::Machine& machine, const std::vector<std::string>& folders,
                   const std::vector<std::string>& probe, const Report& report);

// "0.0.51", from the name of the folder NAME-VERSION.dist-info that a Python package of the file has beside
// it; "" when there is none.
std::string package_version(const std::string& file);

}  // namespace sluice::monitor
