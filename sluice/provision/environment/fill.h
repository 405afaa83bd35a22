// The machine that fills the disk: made, watched, and deleted.
//
// It reports without ssh: its script ends by writing its exit status and its last lines as guest attributes
// (sluice/status, sluice/tail), which stay with the machine as long as it is there, and the status on its
// serial port too, for projects that forbid guest attributes. The machine stays until that was read; a
// deadline of the service's own (maxRunDuration) deletes it when nobody comes.
#pragma once

#include "sluice/provision/environment/plan.h"

namespace sluice::provision {

// Until the disk carries the label that says it is filled, and the machine is gone. A machine of an earlier
// call is adopted when it runs the same script. kFailedPrecondition with the script's last lines when it
// failed, or when its machine has gone without a word; the disk stays, and a further call tries again.
google::Done fill_disk(Cloud& cloud, const Settings& settings, const Mark& mark);

// A Hyperdisk can be read by several machines only after it was told so. Nothing to do for others.
google::Done share_disk(Cloud& cloud, const Settings& settings);

}  // namespace sluice::provision
