// A mesh over several TPU slices. Internal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/mesh/mesh.h"

namespace sluice {

// Returns a warning if devices that differ only in their place along `fsdp`, `sequence` or `tensor` belong to
// different slices of `slice_of` [device], as these axes exchange weights or activations; "" if only `data`
// spans slices.
std::string axes_between_slices(const Mesh& mesh, const std::vector<int64_t>& slice_of);

}  // namespace sluice
