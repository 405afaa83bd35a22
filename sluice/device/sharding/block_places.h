// The blocks of a value over a mesh: which processes hold each of them, and the copy of one to the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sluice/device/device.h"
#include "sluice/device/sharding/blocks.h"
#include "sluice/device/value.h"

namespace sluice::device {

// A block, without padding, and the numbers of the processes whose devices hold it, in ascending order.
struct BlockPlace {
  std::vector<int64_t> start, sizes;
  std::vector<int> processes;
};

// The blocks of one value, in the order of the devices that hold them first. No two of them overlap, and
// together they are the value. A value that is whole on every device is one block of all processes.
struct Blocks {
  DataPtr data;
  at::ScalarType type = at::ScalarType::Undefined;
  std::vector<int64_t> sizes;  // of the whole value
  std::vector<BlockPlace> places;
};

// Returns the blocks of a tensor on the device; cuts if it is pending. Takes the trace's lock.
Blocks blocks_of(const at::Tensor& tensor);
// Starts the copy of a block that this process holds. Fetch::get() returns one contiguous tensor of the
// block's sizes. Later writes to the tensor do not change it. Takes the trace's lock.
Fetch fetch_block(const Blocks& blocks, size_t number);
// Returns a fetch of this part of the block, which is not copied from the device again: get() returns a
// tensor of its own.
Fetch fetch_part(const Fetch& block, const LocalBlock& part);

}  // namespace sluice::device
