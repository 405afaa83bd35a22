// Whether standard output took what a verb wrote.
#pragma once

namespace sluice::cli {

// To be asked once, after a verb: writes what is left of standard output and returns the exit status. That is
// 1 instead of 0 if anything was lost, for example because the disk is full, and one line on standard error
// says so. A pipe that its reader has closed is no failure: the reader has what it wanted.
int checked_output(int status);

}  // namespace sluice::cli
