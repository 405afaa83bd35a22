// The exposures of a plan beyond its rows: files that are sent, values that others can read, open ports.
#pragma once

#include <string>
#include <vector>

#include "sluice/provision/environment/plan.h"

namespace sluice::provision {

// Returns lines for people. Parts that the plan does not create are not mentioned.
std::vector<std::string> notices(const Settings& settings, const Plan& plan);

}  // namespace sluice::provision
