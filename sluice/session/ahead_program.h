// A program of the user's own that is only compiled ahead of time: what SLUICE_ESTIMATE does to it.
#pragma once

#include "sluice/session/session.h"

namespace sluice::sessions {

// Called when a session starts, with what it asks for; returns what it gets: one device while recording.
//
// With SLUICE_ESTIMATE=v3-32,v5litepod-16 the process becomes `sluice estimate` for these slices, with this
// very command line as the program to look at; `sluice` is looked for on $PATH, or $SLUICE_PROGRAM names it.
// Throws kNotFound when it cannot be started.
//
// With SLUICE_AHEAD=32:FILE, which that one sets, the program records its steps for 32 replicas without
// running them, writes the second one's StableHLO to FILE and ends.
Options compile_instead_of_running(const Options& options);

}  // namespace sluice::sessions
