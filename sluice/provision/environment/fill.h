// The machine that fills the disk: created, watched and deleted here.
//
// It reports without ssh: its script ends by writing its exit status and its last lines as guest attributes
// (sluice/status, sluice/tail), which last as long as the machine. It also writes the status to its serial
// port, for projects that forbid guest attributes. The machine stays until these were read; if nobody reads
// them, the service's own deadline (maxRunDuration) deletes it.
#pragma once

#include "sluice/provision/environment/plan.h"

namespace sluice::provision {

// Returns when the disk has the label of a filled disk and the machine is deleted. Adopts a machine of an
// earlier call if it runs the same script. kFailedPrecondition with the script's last lines if it failed, or
// if its machine vanished without a report; the disk stays, and the next call tries again.
google::Done fill_disk(Cloud& cloud, const Settings& settings, const Mark& mark);

// Switches a Hyperdisk to the mode in which several machines can read it. Other disks need nothing.
google::Done share_disk(Cloud& cloud, const Settings& settings);

}  // namespace sluice::provision
