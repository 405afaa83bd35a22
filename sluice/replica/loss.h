// Why a run ended before its time, in the same words whoever noticed it. Needs no LibTorch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/error.h"

namespace sluice::replica {

// "lost process 1 of 4 (SIGN): it was killed or stopped, or …"; the sign is what was seen of it, such as
// "it has ended".
std::string lost_text(const std::vector<int>& processes, int count, const std::string& sign);
// Of a process that said itself that it goes on no more.
std::string failed_text(int process, const std::string& reason);
// kUnavailable for a process that was lost, kAborted for one that failed. The text is another process's.
Error ending(const std::string& text);
// What another process said, for a message: printable, and its first 4096 bytes.
std::string said(std::string_view text);

}  // namespace sluice::replica
