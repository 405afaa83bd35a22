// Files that are run, or decide what is run: no other user may have written them.
#pragma once

#include <string>

#include "sluice/base/result.h"

namespace sluice::base {

// Reads a regular file. This user or root must own the file and its folder, and nobody else may write to
// either (a group that has only this user may). The file itself must be no link. kNotFound if it is missing;
// kPermissionDenied says which condition fails. Checks the opened file itself. Threads: any.
Result<std::string> read_trusted_file(const std::string& path);

// Checks the file at `path`, after its links are followed, and its folder as read_trusted_file() does.
Status check_trusted(const std::string& path);

// Checks the folder at `path`, after its links are followed, as read_trusted_file() checks a file's folder;
// the folder above it is not checked. Errors as there.
Status check_private_folder(const std::string& path);

}  // namespace sluice::base
