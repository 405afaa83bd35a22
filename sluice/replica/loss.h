// Messages for why a run ended early, the same in every process that noticed it. Needs no LibTorch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/error.h"

namespace sluice::replica {

// Returns "lost process 1 of 4 (SIGN): it was killed or stopped, or …". `sign` is the observation, such as
// "it has ended".
std::string lost_text(const std::vector<int>& processes, int count, const std::string& sign);
// Returns the text for a process that reported itself that it stops.
std::string failed_text(int process, const std::string& reason);
// Returns kUnavailable for a process that was lost, kAborted for one that failed. The text comes from another
// process.
Error ending(const std::string& text);
// Returns another process's text for a message: printable, and at most its first 4096 bytes.
std::string said(std::string_view text);

}  // namespace sluice::replica
