// Carries out a plan step by step. After a kill at any request, a second call reaches the same end: it looks
// at what exists, adopts it if it belongs to this environment, and refuses it if not.
#pragma once

#include <string>

#include "sluice/provision/environment/plan.h"

namespace sluice::provision {

// Progress goes to cloud.say. If a create operation fails late or never ends, the resource itself decides.
// kFailedPrecondition if the preparation script failed: the message has its last lines, its machine is
// deleted, and the next call runs the script again.
google::Done execute(Cloud& cloud, const Settings& settings, const Plan& plan);

// Sets the state of each bucket that holds objects to HOLDS_DATA.
google::Done look_into_buckets(Cloud& cloud, const std::string& environment, Survey& survey);

}  // namespace sluice::provision
