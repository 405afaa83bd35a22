// Writes spans as an XSpace, the message that TensorBoard's profile plugin, xprof and JAX read
// (tsl/profiler/protobuf/xplane.proto of TensorFlow).
#pragma once

#include <string>

#include "sluice/base/span.h"

namespace sluice::profile {

// Returns a serialised XSpace with one plane, "/host:CPU", and a line for each thread and track. Steps are
// marked as the readers expect from a host (stats _r = 1 and step_num). Concatenated with a plugin's XSpace,
// the result is one XSpace with the planes of both.
std::string xspace_of(const base::SpanRecording& recording, const std::string& host);

}  // namespace sluice::profile
