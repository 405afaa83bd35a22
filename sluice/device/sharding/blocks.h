// Tensors on the device whose blocks come one by one, so that no host needs the whole tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sluice/mesh/layout.h"

namespace sluice::device {

// The elements of a tensor that a device holds, without padding.
struct LocalBlock {
  std::vector<int64_t> start, sizes;
  bool operator==(const LocalBlock&) const = default;
};

// Returns the block of a device of the mesh. A block that is only padding has a size of 0. Throws
// kInvalidArgument for a misfit.
LocalBlock block_of(const Layout& layout, const Mesh& mesh, const std::vector<int64_t>& sizes,
                    int64_t device);

// Returns each different block of a tensor of these sizes that this process's devices hold: one without a
// mesh. Throws as block_of() does.
std::vector<LocalBlock> blocks_here(const Layout& layout, const std::vector<int64_t>& sizes);

// Returns a view of this part of a tensor.
at::Tensor part_at(at::Tensor whole, const LocalBlock& block);

// Returns a tensor on the device, laid out so, of these blocks: [blocks_here()], CPU tensors of one element
// type to which nobody may write any more. Later writes to it keep the layout. In several processes each
// gives its own. Waits until the devices have the blocks.
at::Tensor from_blocks(const Layout& layout, const std::vector<int64_t>& sizes, at::ScalarType type,
                       const std::vector<at::Tensor>& blocks);

}  // namespace sluice::device
