// Checks whether standard output took everything that a verb wrote.
#pragma once

namespace sluice::cli {

// To be called once, after a verb: writes the rest of standard output and returns the exit status. If
// anything was lost, for example because the disk is full, the status is 1 instead of 0, and a line on
// standard error says so. A pipe that its reader has closed is no failure: the reader has what it wanted.
int checked_output(int status);

}  // namespace sluice::cli
