// Moves the end of existing resources: their mark has another time from then on.
#pragma once

#include "sluice/provision/environment/plan.h"

namespace sluice::provision {

// Gives the step's piece the expiry of `mark`, in labels or description; a TPU's timer on worker 0 follows.
google::Done move_end(Cloud& cloud, const Step& step, const Mark& mark);

}  // namespace sluice::provision
