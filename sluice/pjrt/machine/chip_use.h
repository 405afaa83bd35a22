// What keeps this process from the TPU chips: other processes that hold them, or rights that it lacks. All of
// it is read before libtpu is loaded, which would wait for minutes or say less.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pjrt/machine/holder.h"
#include "sluice/pjrt/machine/machine.h"

namespace sluice::pjrt {

// Other processes that hold the machine's chips, as far as this user may see it: by their open files, and by
// libtpu's lock, which also shows the processes of other users. Where this process is told to use some of the
// chips only ($TPU_VISIBLE_CHIPS, …) the others do not count; with $ALLOW_MULTIPLE_LIBTPU_LOAD=1, which tells
// libtpu that it may meet others, nobody does.
std::vector<Holder> chip_holders(const Machine& machine);

// An error that says what to do when this process cannot use the machine's chips: kUnavailable where others
// hold them, kPermissionDenied, or kFailedPrecondition where there are no device files (a container). Fine on
// a machine without chips.
base::Status check_chips(const Machine& machine);
// The part of it about rights: what this user lacks to open the chips' files.
base::Status check_rights(const Machine& machine);
// What to add to an error of libtpu: "; the chips are held by …", as far as it can be seen.
std::string chips_finding(const Machine& machine);

}  // namespace sluice::pjrt
