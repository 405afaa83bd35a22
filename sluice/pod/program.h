// The program that a run brings along: an archive, put on every host once, by its checksum.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/pod/job.h"
#include "sluice/pod/signals.h"

namespace sluice::pod {

// Reads the archive once, to its end: a tar archive packed with zstd that holds one folder with bin/ in it,
// as `make dist` writes it. Errors (kDataLoss): another checksum than that in the file PATH.sha256, if there
// is one, or an archive that ends early or is damaged; kInvalidArgument: another kind of file.
base::Result<Program> check_program(const std::string& path);

// Writes what is packed in the archive into `to`, as a tar archive, for hosts without zstd.
base::Status unpack_program(const Program& program, const std::string& to);

// The script that takes the program on a host (program.sh explains it).
std::string program_script(const Program& program);

// Puts job.program on each host of the job, or on this machine: hosts that have it send nothing, a connection
// that breaks goes on where it was, bytes that arrive damaged are sent again once. At most job.ssh.parallel
// hosts at a time. Says what it does; on a terminal also how far it is. `folder`: for the unpacked archive,
// which is removed in the end. Errors name every host where it failed; a signal cancels.
base::Status send_program(const Job& job, const std::string& folder, Signals& signals);

}  // namespace sluice::pod
