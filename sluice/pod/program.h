// The program that a run takes along: an archive that is installed once on every host, by its checksum.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/pod/job.h"
#include "sluice/pod/signals.h"

namespace sluice::pod {

// Reads the archive once, to its end: a tar archive packed with zstd that contains one folder with bin/ in
// it, as `make dist` writes it. Errors: kDataLoss for another checksum than in the file PATH.sha256, if that
// exists, and for an archive that ends early or is damaged; kInvalidArgument for another kind of file.
base::Result<Program> check_program(const std::string& path);

// Writes the unpacked tar archive to `to`, for hosts without zstd.
base::Status unpack_program(const Program& program, const std::string& to);

// Returns the script that installs the program on a host (program.sh explains it).
std::string program_script(const Program& program);

// Installs job.program on each host of the job, or on this machine. A host that has it already receives
// nothing, a broken connection is resumed, and bytes that arrive damaged are sent again once. At most
// job.ssh.parallel hosts at a time. Reports what it does, on a terminal also the progress. `folder`: for the
// unpacked archive, which is removed in the end. Errors name every host where it failed; a signal cancels.
base::Status send_program(const Job& job, const std::string& folder, Signals& signals);

}  // namespace sluice::pod
