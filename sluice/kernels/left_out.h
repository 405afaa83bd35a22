// Parts of this room that a run leaves out. Internal to this room; install.h has the list of names.
#pragma once

#include <string_view>

namespace sluice::kernels {

// Returns whether the choice or pattern is left out. Threads: any.
bool is_left_out(std::string_view name);

}  // namespace sluice::kernels
