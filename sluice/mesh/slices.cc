#include "sluice/mesh/slices.h"

#include <string_view>

#include "sluice/base/text/join.h"

namespace sluice {

std::string axes_between_slices(const Mesh& mesh, const std::vector<int64_t>& slice_of) {
  int64_t stride = static_cast<int64_t>(slice_of.size());
  for (const std::string_view axis : kMeshAxes) {
    const int64_t size = mesh.size(axis);
    stride /= size;
    if (axis == "data" || size == 1) continue;
    for (int64_t device = 0; device < static_cast<int64_t>(slice_of.size()); ++device) {
      const int64_t first = device - mesh.place(device, axis) * stride;
      if (slice_of[static_cast<size_t>(device)] == slice_of[static_cast<size_t>(first)]) continue;
      return base::str(
          axis, '=', size, " of the mesh ", mesh.str(), " spans slices: devices ", first, " and ", device,
          " exchange ", axis == "fsdp" ? "weights" : "activations",
          " in each layer over the network of the data center. Let data span the slices, and the "
          "other axes fit into one");
    }
  }
  return "";
}

}  // namespace sluice
