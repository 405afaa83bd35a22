// Layouts of the device's values over its mesh: one object for each layout, blocks, and the layouts of a
// program's results. Without a mesh, no value has a layout.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sluice/device/program/lower.h"
#include "sluice/device/value.h"
#include "sluice/mesh/layout.h"
#include "sluice/mesh/mesh.h"

namespace sluice::device {

// A layout of the open device. Equal layouts have one address.
struct InternedLayout {
  Layout layout;
  int64_t parts = 1;     // the number of different blocks
  uint64_t hash = 0;     // the same in every process
  uint64_t opening = 0;  // Runtime::opening of its device
};

// Returns the layout on this mesh; null if every device then has all of a tensor. Any thread.
LayoutRef intern_layout(const Mesh& mesh, const Layout& layout);
// Returns the layout if it is the open device's and divides these dimensions; else null.
LayoutRef fitting(LayoutRef layout, const Mesh& mesh, c10::IntArrayRef dims);
// Returns the layout that a value from the host gets that replaces all of this tensor; null: none. Takes the
// trace's lock.
LayoutRef layout_to_keep(const at::Tensor& tensor);

// Returns the layout of a batch with these dimensions: its rows over data and fsdp. [rows, length] and [rows,
// length, …] also lie along their length, over `sequence`, if that divides it. (A row of running text has one
// token more than the model reads, and stays whole along `sequence`.)
Layout layout_of_batch(const Mesh& mesh, c10::IntArrayRef dims);
// Returns the layout that upload() gives a tensor: the batch's, if the mesh divides it. Warns once if it
// does not; if several processes give its rows, that is an error. Any thread.
LayoutRef layout_of_upload(const at::Tensor& host);

// Returns the layout itself, for a tensor with that many dimensions.
Layout whole_or(LayoutRef layout, size_t rank);
// Return the type of one device's block, and of the whole value as programs get it and return it; both with
// the layout's padding.
stablehlo::Type block_type(const Mesh& mesh, const stablehlo::Type& type, LayoutRef layout);
stablehlo::Type padded_type(const Mesh& mesh, const stablehlo::Type& type, LayoutRef layout);
// Returns a device's block of a value with these dimensions, whose rows from `first_row` on are in a host
// tensor, and zeros where the layout pads it. It may share the tensor's memory.
at::Tensor block_of(const Mesh& mesh, const at::Tensor& host, LayoutRef layout, int64_t device,
                    const std::vector<int64_t>& dims, int64_t first_row);
// Returns a block of these sizes: a contiguous tensor of the block's elements, and zeros after them.
at::Tensor padded_block(const at::Tensor& block, const std::vector<int64_t>& sizes);
// Returns where the block of one of this process's devices begins in a laid-out value.
std::vector<int64_t> start_of(const Data& data, size_t device);
// Returns the numbers of the buffers to read for a whole value: one for each replica, or with a mesh one for
// each different block that this process's devices hold.
std::vector<size_t> buffers_to_read(const Data& data);
// Returns the whole value of these buffers' blocks.
at::Tensor joined_blocks(const Data& data, const std::vector<size_t>& buffers,
                         const std::vector<at::Tensor>& blocks);

// Returns the layouts of a plan's results. A result lies as the tensor that it replaces, and the gradient of
// a laid-out parameter like the parameter. A value of the same shape that such a result is computed from,
// element for element (a gradient, the optimizer's state), lies like it, if it is a result too. All others
// are whole on every device.
std::vector<LayoutRef> layouts_of_outputs(const Trace& trace, const Plan& plan, const Mesh& mesh,
                                          const std::vector<uint32_t>& output_of);

}  // namespace sluice::device
