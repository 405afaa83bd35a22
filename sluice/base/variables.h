// All environment variables that the program, its launcher and its scripts read, and the variables that
// people set for other programs and expect to work here.
#pragma once

#include <string>
#include <vector>

namespace sluice::base {

// Returns the names SLUICE_… in alphabetical order. A test compares them with the sources and with the docs.
const std::vector<std::string>& known_variables();

// Reports variables that are set but that nothing reads: a line for each, or "". `settings` have the form
// NAME=VALUE. SLUICE_TEST_… belong to the tests.
std::string idle_variables(const std::vector<std::string>& settings);
// Reports such variables of this process's environment.
std::string idle_variables();

}  // namespace sluice::base
