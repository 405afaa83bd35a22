// A script that an environment's file names. The file may be a stranger's, and the script's bytes are sent to
// machines.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::provision {

// Returns the bytes of the script `path`, relative to `folder`, the file's folder. After its links are
// resolved it must be in that folder, with no hidden part in its name below it (.git, .ssh, .env), or be one
// of `allowed`, the files that the user named. kPermissionDenied says what to do; kInvalidArgument: it is not
// a regular file, or is larger than the service allows.
base::Result<std::string> read_script_file(const std::string& path, const std::string& folder,
                                           const std::vector<std::string>& allowed);

}  // namespace sluice::provision
