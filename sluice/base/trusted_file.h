// Files that are run, or decide what is run: nobody else may have written them.
#pragma once

#include <string>

#include "sluice/base/result.h"

namespace sluice::base {

// The bytes of a regular file that this user or root owns and nobody else may write, in a folder of which the
// same holds (a group that has this user alone may). The file itself must be no link. kNotFound where there
// is none, kPermissionDenied says what does not hold. What is looked at is the opened file. Threads: any.
Result<std::string> read_trusted_file(const std::string& path);

// Whether the file at `path`, where its links lead, and its folder are such ones. Errors as above.
Status check_trusted(const std::string& path);

// Whether the folder at `path`, where its links lead, is such a one: nothing is asked of the folder that it
// lies in. kNotFound where there is none. Errors as above.
Status check_private_folder(const std::string& path);

}  // namespace sluice::base
