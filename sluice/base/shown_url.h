// Addresses as they may be kept and shown: without what opens a door.
#pragma once

#include <string>
#include <string_view>

namespace sluice::base {

// The text with each http or https address in it cut: without a user and a password before the host
// ("user:word@"), without the query and what follows it, which may hold a signature ("sig=…",
// "X-Amz-Signature=…"). An address ends at white space, a quote, <, > or a backslash. Errors, logs,
// checkpoints and what trackers are told go through it. Threads: any.
std::string shown_urls(std::string_view text);

}  // namespace sluice::base
