// The environment variables that the program, its launcher and its scripts read, all of them, and those that
// people set for other programs and expect to work here.
#pragma once

#include <string>
#include <vector>

namespace sluice::base {

// SLUICE_…, in alphabetical order. A test compares them with the sources and with the docs.
const std::vector<std::string>& known_variables();

// What to say of variables that somebody has set and nobody reads: a line for each, or "". `settings`: of
// the form NAME=VALUE. SLUICE_TEST_… are the tests' own.
std::string idle_variables(const std::vector<std::string>& settings);
// The same of this process's environment.
std::string idle_variables();

}  // namespace sluice::base
