#include "sluice/device/sharding/block_places.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/device/sharding/blocks.h"
#include "sluice/device/sharding/layouts.h"
#include "sluice/device/transfer.h"

namespace sluice::device {
namespace {

// Returns the one block of a value that is whole on every device.
BlockPlace whole_place(const Data& data, int processes) {
  BlockPlace place{std::vector<int64_t>(data.type->type.dims.size(), 0), data.type->type.dims, {}};
  place.processes.resize(static_cast<size_t>(processes));
  std::iota(place.processes.begin(), place.processes.end(), 0);
  return place;
}

std::vector<BlockPlace> places_of(const Data& data, const World& world) {
  if (data.layout == nullptr) return {whole_place(data, world.processes)};
  const Layout& layout = data.layout->layout;
  const std::vector<int64_t>& dims = data.type->type.dims;
  std::vector<BlockPlace> places;
  std::map<std::vector<int64_t>, size_t> known;
  for (int64_t device = 0; device < world.mesh->devices(); ++device) {
    const LocalBlock block = block_of(layout, *world.mesh, dims, device);
    if (std::find(block.sizes.begin(), block.sizes.end(), 0) != block.sizes.end()) continue;
    const auto [found, fresh] = known.try_emplace(block.start, places.size());
    if (fresh) places.push_back({block.start, block.sizes, {}});
    std::vector<int>& processes = places[found->second].processes;
    const auto process = static_cast<int>(device / world.mesh_devices);
    if (processes.empty() || processes.back() != process) processes.push_back(process);
  }
  return places;
}

}  // namespace

Blocks blocks_of(const at::Tensor& tensor) {
  const TraceLock lock = lock_trace();
  Blocks blocks;
  blocks.data = materialize(tensor);
  blocks.type = blocks.data->type->scalar_type;
  blocks.sizes = blocks.data->type->type.dims;
  blocks.places = places_of(*blocks.data, runtime().world);
  return blocks;
}

}  // namespace sluice::device
