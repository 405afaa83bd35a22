// Addresses without their secrets, so that they may be kept and shown.
#pragma once

#include <string>
#include <string_view>

namespace sluice::base {

// Cuts each http or https address in the text: removes a user and a password before the host ("user:word@"),
// and the query and what follows it, which may hold a signature ("sig=…", "X-Amz-Signature=…"). An address
// ends at white space, a quote, <, > or a backslash. Errors, logs, checkpoints and everything sent to
// trackers go through it. Threads: any.
std::string shown_urls(std::string_view text);

}  // namespace sluice::base
