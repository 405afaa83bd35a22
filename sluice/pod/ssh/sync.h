// Copies a working folder to the hosts before a run.
#pragma once

#include "sluice/base/result.h"
#include "sluice/pod/job.h"
#include "sluice/pod/signals.h"
#include "sluice/pod/ssh/sync_bucket.h"

namespace sluice::pod {

// Brings job.sync, except what job.sync_exclude names, into job.folder on each host. Each host is asked what
// it lacks (sync_list.h), and hosts that lack the same get the same archive, which is packed once, as
// `archive` or under longer names. With job.sync_bucket, it is sent to the bucket once, and a host that
// cannot read it there gets it from here. Files that exist only on a host stay. Errors name every host where
// it failed; a signal cancels.
base::Status sync_folder(const Job& job, const std::string& archive, Signals& signals);

// Return the commands that it runs, for people. The names to pack are in ARCHIVE.names. `form`: gz or zst.
std::vector<std::string> list_command(const Job& job);
std::vector<std::string> pack_command(const Job& job, const std::string& archive, const std::string& form);
// Returns sync.sh with its settings. `what`: ask or take. `object`: what the host reads instead of its input.
std::string sync_script(const Job& job, const std::string& what, const std::string& form,
                        const SharedFile& object = {});

}  // namespace sluice::pod
