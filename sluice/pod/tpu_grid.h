// The arrangement of the chips of a TPU slice, for runs with one process per chip.
#pragma once

#include <string>

#include "sluice/base/result.h"

namespace sluice::pod {

// Returns the number of chips along x, y and z in the form of libtpu's variables, "4,4,1". `topology` is
// "4x4", "2x2x4" or the name of a slice, "v4-32". For "" it is the topology of Google's two-dimensional
// slices (v2, v3, v5e, v6e): powers of two as near to a square as possible, the shorter side first. Errors:
// another text, or another number of chips than `chips`; for "" also a number that no such slice has.
base::Result<std::string> chip_grid(const std::string& topology, int chips);

// Returns whether a slice without a name may have this number of hosts and of chips on each: 4, or 8 on a
// single host.
bool is_usual_slice(int hosts, int chips_per_host);

}  // namespace sluice::pod
