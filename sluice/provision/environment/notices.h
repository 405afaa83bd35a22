// What a plan hands out beyond what its rows say: files that are sent, values that others can read, open
// ports.
#pragma once

#include <string>
#include <vector>

#include "sluice/provision/environment/plan.h"

namespace sluice::provision {

// For people, one line each. Parts of which the plan makes nothing are not mentioned.
std::vector<std::string> notices(const Settings& settings, const Plan& plan);

}  // namespace sluice::provision
