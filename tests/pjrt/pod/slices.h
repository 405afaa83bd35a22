// Several TPU slices in one pod: the numbers of their devices. Inside the pod devices are numbered from 0; to
// the outside device i of slice s has the number 100000 × s + i, as on several slices of TPUs.
#pragma once

#include <string>
#include <string_view>

#include "tests/pjrt/pod/layout.h"
#include "tests/pjrt/pod/wire.h"

namespace emulated_pod {

constexpr int kSliceStride = 100'000;

// The slice of a worker: each has the same number of them.
inline int slice_of_worker(const Layout& layout, int slices, int worker) {
  return worker / (layout.workers() / slices);
}

// The number to the outside of the device with this number in the pod.
int outer_id(const Layout& layout, int slices, int device);

// The compile options with the pod's own numbers in their device assignment. kInvalidArgument for a number
// that no device has; options that cannot be read stay as they are.
Result<std::string> with_inner_ids(std::string_view compile_options, const Layout& layout, int slices);

}  // namespace emulated_pod
