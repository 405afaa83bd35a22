// Checks the plugins: where they are, their versions, and whether this program can use them.
#pragma once

#include <string>
#include <vector>

#include "sluice/monitor/doctor/finding.h"
#include "sluice/pjrt/machine/machine.h"

namespace sluice::monitor {

// Checks the plugin for the machine's accelerator, and the CPU's. `probe` is a command that gets the path of
// a plugin and prints the version of its API, "0.116". It is a separate process, because libtpu may end the
// process that loads it.
void check_plugins(const pjrt::Machine& machine, const std::vector<std::string>& folders,
                   const std::vector<std::string>& probe, const Report& report);

// Returns "0.0.51", from the name of the folder NAME-VERSION.dist-info that a Python package has next to the
// file; "" if there is no such folder.
std::string package_version(const std::string& file);

}  // namespace sluice::monitor
