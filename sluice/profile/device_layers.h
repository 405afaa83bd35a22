// Reads the operations of TPUs and GPUs, by layer, from the planes of a plugin's own profiler.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/profile/layers.h"

namespace sluice::profile {

// Reads a serialised XSpace in the layouts of the profilers for TPU and CUDA: planes "/device:TPU:0" with a
// line "XLA Ops", whose events' metadata have the stats tf_op, flops and bytes_accessed; planes
// "/device:GPU:0" with a line for each stream, whose events have tf_op, or hlo_op and the program in the
// plane "/host:metadata". Operations have the locations of the program (stablehlo/location.h). The numbers
// are the mean over all devices and over the runs of the longest program, if the line "XLA Modules" has them,
// else over `steps`.
// kNotFound, naming what was found instead: no such plane, or none with named operations.
base::Result<LayerTable> layers_of_planes(std::string_view xspace, double steps, double step_nanoseconds);

}  // namespace sluice::profile
