// How the chips of a TPU slice lie, for runs with one process per chip.
#pragma once

#include <string>

#include "sluice/base/result.h"

namespace sluice::pod {

// The chips along x, y and z as libtpu's variables have them, "4,4,1". `topology` is "4x4", "2x2x4" or the
// name of a slice, "v4-32"; with "" what Google's two-dimensional slices have (v2, v3, v5e, v6e): as near to
// a square as powers of two come, the shorter side first. Errors: another text, or another number of chips
// than `chips`; with "" also a number that no such slice has.
base::Result<std::string> chip_grid(const std::string& topology, int chips);

// Whether a slice without a name may have so many hosts with so many chips each: 4, or 8 on a single host.
bool is_usual_slice(int hosts, int chips_per_host);

}  // namespace sluice::pod
