// Identifies the build of the program that runs.
#pragma once

#include <string>

namespace sluice::base {

// Returns hexadecimal digits that differ between two builds of one version: the executable's build id and, if
// Sluice is in a shared library, a "+" and the library's build id. The linker makes a build id of the file's
// contents, so copies have the same one; an executable without a build id gets its checksum instead. Reads
// the program's headers (or the whole executable) once.
const std::string& build_id();

}  // namespace sluice::base
