// A script that an environment's file names, which may be a stranger's: what it holds is sent to machines.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::provision {

// The bytes of the script `path`, found from `folder`, the file's. Where its links lead it must lie in that
// folder, and no part of its name below it may be hidden (.git, .ssh, .env), or it must be one of `allowed`,
// the files that the user named. kPermissionDenied says what to do; kInvalidArgument: it is no regular file,
// or larger than the service takes.
base::Result<std::string> read_script_file(const std::string& path, const std::string& folder,
                                           const std::vector<std::string>& allowed);

}  // namespace sluice::provision
