// Names from elsewhere (a store's listing, an archive, a state file) as files below a folder.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::base {

// Returns "folder/a/b" for "folder" and "a/b". kInvalidArgument for a name that would lead out of the folder
// or is invalid: empty, absolute, with a part that is empty, "." or "..", or with a byte below 32. Links in
// the folder are followed: it must be the caller's own. Threads: any.
Result<std::string> safe_join(std::string_view folder, std::string_view name);

}  // namespace sluice::base
