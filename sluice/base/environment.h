// Environment variables, which are read here and nowhere else (a test checks this). docs/environment.md lists
// the variables that Sluice reads, and which of several sources wins.
#pragma once

#include <optional>
#include <string>

namespace sluice::base {

// The variable's value; nothing when it is unset or empty.
std::optional<std::string> environment(const char* name);
// Returns the value even if it is empty, for the few variables in which an empty value differs from an unset
// one.
std::optional<std::string> environment_even_empty(const char* name);

// Returns true for 1, true, yes, on (any case); false for 0, false, no, off; the default when unset. Any
// other value logs a warning and gives the default.
bool environment_flag(const char* name, bool fallback);
// Returns seconds, `least` or more; the default when unset. Any other value logs a warning and gives the
// default.
double environment_seconds(const char* name, double fallback, double least);

// Reads a text as environment_flag does; nothing for anything else.
std::optional<bool> switch_of(std::string text);

}  // namespace sluice::base
