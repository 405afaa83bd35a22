// Finds what keeps this process from the TPU chips: other processes that hold them, or missing rights. All of
// it is read before libtpu is loaded, which would wait for minutes or say less.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pjrt/machine/holder.h"
#include "sluice/pjrt/machine/machine.h"

namespace sluice::pjrt {

// Returns the other processes that hold the machine's chips, as far as this user can see: by their open
// files, and by libtpu's lock, which also shows processes of other users. If this process is restricted to
// some chips ($TPU_VISIBLE_CHIPS, …), holders of other chips do not count; with
// $ALLOW_MULTIPLE_LIBTPU_LOAD=1, by which libtpu accepts other processes, none counts.
std::vector<Holder> chip_holders(const Machine& machine);

// Returns an error that says what to do if this process cannot use the machine's chips: kUnavailable if other
// processes hold them, kPermissionDenied, or kFailedPrecondition if there are no device files (a container).
// OK on a machine without chips.
base::Status check_chips(const Machine& machine);
// Checks only the rights: whether this user may open the chips' files.
base::Status check_rights(const Machine& machine);
// Returns text for an error of libtpu: "; the chips are held by …", as far as it can be seen.
std::string chips_finding(const Machine& machine);

}  // namespace sluice::pjrt
