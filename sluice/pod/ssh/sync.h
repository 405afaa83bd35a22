// Copies a working folder to the hosts before a run.
#pragma once

#include "sluice/base/result.h"
#include "sluice/pod/job.h"
#include "sluice/pod/signals.h"

namespace sluice::pod {

// Packs job.sync once, except what job.sync_exclude names, into `archive`, and unpacks it in job.folder on
// each host. Files that exist only on a host stay. Errors name every host where it failed; a signal cancels.
base::Status sync_folder(const Job& job, const std::string& archive, Signals& signals);

// Return the commands that it runs, for people.
std::vector<std::string> pack_command(const Job& job, const std::string& archive);
std::string unpack_script(const Job& job);

}  // namespace sluice::pod
