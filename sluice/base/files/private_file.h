// Folders and files that only this user may read and write.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::base {

// Makes the folder with mode 0700, and its missing parents. An existing folder must belong to this user or
// root, and nobody else may be able to write to it: otherwise kPermissionDenied says which condition fails.
Status make_private_folder(const std::string& path);

// Writes the file as write_file_atomically() does, with mode 0600 from its first byte on.
Status write_private_file(const std::string& path, std::string_view bytes);

}  // namespace sluice::base
