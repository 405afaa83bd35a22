// SLUICE_ESTIMATE: compiles a user's own program ahead of time instead of running it.
#pragma once

#include "sluice/session/session.h"

namespace sluice::sessions {

// Called with the options of a session that starts; returns the options it gets: one device while recording.
//
// With SLUICE_ESTIMATE=v3-32,v5litepod-16 the process becomes `sluice estimate` for these slices, with its
// own command line as the program to look at; `sluice` is searched on $PATH, or $SLUICE_PROGRAM names it.
// Throws kNotFound if it cannot be started.
//
// With SLUICE_AHEAD=32:TPU v3::FILE, which `sluice estimate` sets, the program records its steps for 32
// replicas on devices of this kind without running them, writes the StableHLO of the second step to FILE and
// ends. The programs before it are in FILE.1, FILE.2, …, each text once; FILE.arguments has the names of
// FILE's arguments, one a line (device::Ahead::arguments). With SLUICE_AHEAD=32:TPU v3:fsdp=32:FILE the
// devices share one model over this mesh, which takes precedence over the program's own.
Options compile_instead_of_running(const Options& options);

// For a trainer, whose tests are recorded as well: with SLUICE_AHEAD the process then does not end with the
// second step but with end_recording(). Programs after the second step get the next numbers.
void record_after_steps();
// Whether the second step was recorded.
bool steps_are_recorded();
[[noreturn]] void end_recording();

}  // namespace sluice::sessions
