// Environment variables, which are read here and nowhere else (a test looks). docs/environment.md has the
// table of those that count, and which of several sources wins.
#pragma once

#include <optional>
#include <string>

namespace sluice::base {

// The variable's value; nothing when it is unset or empty.
std::optional<std::string> environment(const char* name);
// The same for the few variables in which an empty value says something else than none.
std::optional<std::string> environment_even_empty(const char* name);

// True for 1, true, yes, on (any case); false for 0, false, no, off; the default when unset. Anything else is
// warned of, and the default too.
bool environment_flag(const char* name, bool fallback);
// Seconds, `least` or more; the default when unset. Anything else is warned of, and the default too.
double environment_seconds(const char* name, double fallback, double least);

// A text as environment_flag reads it; nothing for anything else.
std::optional<bool> switch_of(std::string text);

}  // namespace sluice::base
