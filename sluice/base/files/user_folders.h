// Where the files of this user are that Sluice keeps between runs.
#pragma once

#include <string>

namespace sluice::base {

// Returns $XDG_CACHE_HOME/sluice, or ~/.cache/sluice; "" if neither XDG_CACHE_HOME nor HOME is set. What is
// kept here can be computed again.
std::string user_cache_folder();
// Returns $XDG_STATE_HOME/sluice, or ~/.local/state/sluice. What is kept here, such as the record of a run,
// exists only once.
std::string user_state_folder();

}  // namespace sluice::base
