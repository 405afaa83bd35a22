// Which build of the program this is.
#pragma once

#include <string>

namespace sluice::base {

// Hexadecimal digits that differ between two builds of one version: the build id of the executable that runs,
// and after a "+" that of the shared library which holds Sluice, where it is one. The linker makes a build id
// of the file's contents, so copies have the same; an executable without one is told by its checksum.
// Costs a look at the program's headers (or one reading of the executable), once.
const std::string& build_id();

}  // namespace sluice::base
