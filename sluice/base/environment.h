// Environment variables.
#pragma once

#include <optional>
#include <string>

namespace sluice::base {

// The variable's value; nothing when it is unset or empty.
std::optional<std::string> environment(const char* name);
// True for 1, true, yes, on (any case); false for 0, false, no, off; the default when unset or anything else.
bool environment_flag(const char* name, bool fallback);

}  // namespace sluice::base
