#include "sluice/device/sharding/blocks.h"

#include <algorithm>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/result.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/device/sharding/layouts.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/device/storage.h"
#include "sluice/device/transfer.h"

namespace sluice::device {
namespace {

// Returns the block of one of this process's devices, by its index here.
LocalBlock block_on(const Layout& layout, const std::vector<int64_t>& sizes, size_t device) {
  const World& world = runtime().world;
  if (world.mesh == nullptr) return {std::vector<int64_t>(sizes.size(), 0), sizes};
  return block_of(layout, *world.mesh, sizes, world.first_device() + static_cast<int64_t>(device));
}

size_t devices_here() {
  const Runtime& rt = runtime();
  return rt.ahead ? static_cast<size_t>(rt.world.mesh_devices) : rt.devices.size();
}

}  // namespace

LocalBlock block_of(const Layout& layout, const Mesh& mesh, const std::vector<int64_t>& sizes,
                    int64_t device) {
  LocalBlock block{layout.shard_start(mesh, sizes, device), layout.shard_dims(mesh, sizes)};
  for (size_t d = 0; d < sizes.size(); ++d) {
    block.start[d] = std::min(block.start[d], sizes[d]);
    block.sizes[d] = std::min(block.sizes[d], sizes[d] - block.start[d]);
  }
  return block;
}

std::vector<LocalBlock> blocks_here(const Layout& layout, const std::vector<int64_t>& sizes) {
  std::vector<LocalBlock> blocks;
  for (size_t r = 0; r < devices_here(); ++r) {
    LocalBlock block = block_on(layout, sizes, r);
    if (std::find(blocks.begin(), blocks.end(), block) == blocks.end()) blocks.push_back(std::move(block));
  }
  return blocks;
}

at::Tensor part_at(at::Tensor whole, const LocalBlock& block) {
  for (size_t d = 0; d < block.sizes.size(); ++d)
    whole = whole.narrow(static_cast<int64_t>(d), block.start[d], block.sizes[d]);
  return whole;
}

at::Tensor from_blocks(const Layout& layout, const std::vector<int64_t>& sizes, at::ScalarType type,
                       const std::vector<at::Tensor>& blocks) {
  const World& world = runtime().world;
  const LayoutRef wanted = world.mesh == nullptr ? nullptr : intern_layout(*world.mesh, layout);
  const std::vector<LocalBlock> places =
      runtime().ahead ? std::vector<LocalBlock>() : blocks_here(layout, sizes);
  DataPtr data = upload_blocks(intern(to_dtype(type), sizes), wanted, [&](size_t device) {
    const auto place = std::find(places.begin(), places.end(), block_on(layout, sizes, device));
    const at::Tensor& block = blocks[static_cast<size_t>(place - places.begin())];
    return wanted == nullptr ? block.contiguous()
                             : padded_block(block, wanted->layout.shard_dims(*world.mesh, sizes));
  });
  for (const pjrt::Buffer& buffer : data->buffers) base::value_or_throw(buffer.await());
  if (world.mesh_spans_processes()) data->sameness = Sameness::kGlobal;
  const auto lock = lock_trace();
  at::Tensor made = make_tensor(std::move(data));
  LazyStorage::of(made)->layout = wanted;
  return made;
}

}  // namespace sluice::device
