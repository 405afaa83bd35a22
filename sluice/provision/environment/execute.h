// Does what a plan says, step by step. Killed at any request and begun again it ends the same: what exists is
// looked at, adopted when it is this environment's, and refused when it is not.
#pragma once

#include <string>

#include "sluice/provision/environment/plan.h"

namespace sluice::provision {

// Progress goes to cloud.say. A create operation that fails late or never ends is not the last word: the
// resource is looked at. kFailedPrecondition when the preparation script failed: the message has its last
// lines, its machine is deleted, and running again runs it again.
google::Done execute(Cloud& cloud, const Settings& settings, const Plan& plan);

// Of a bucket that holds objects the state becomes HOLDS_DATA.
google::Done look_into_buckets(Cloud& cloud, const std::string& environment, Survey& survey);

}  // namespace sluice::provision
