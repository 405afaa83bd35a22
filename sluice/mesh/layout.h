// A layout: which part of a tensor each device of a mesh holds.
//
// Each dimension lies over a list of axes, the outermost first, or over none: then every device has all of
// it. A device holds one block of equal size (a shard); devices that differ only along other axes hold equal
// blocks. Axes that a mesh does not have count as axes of one device.
//
// A dimension can be padded: if its axes do not divide it, the blocks are as large as if it were longer, and
// the last ones end with places that belong to no element. They hold zeros.
// Errors: sluice::Error (kInvalidArgument). Threads: const members from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/mesh/mesh.h"

SLUICE_API_BEGIN
namespace sluice {

struct LayoutDim {
  std::vector<std::string> axes;
  // XLA's partitioner lays out the values between arguments and results by the layouts of these, those with
  // smaller numbers first.
  int priority = 0;
  bool padded = false;  // if the axes do not divide the dimension; see above
  bool operator==(const LayoutDim&) const = default;
};

class Layout {
 public:
  Layout() = default;  // of a scalar
  // One entry for each dimension. Throws for an unknown axis and for one that is used twice.
  explicit Layout(std::vector<LayoutDim> dims);
  // Returns the layout that has all of a tensor with `rank` dimensions on every device.
  static Layout replicated(size_t rank);
  // Returns a layout of one dimension over these axes.
  static Layout along(size_t rank, size_t dim, std::vector<std::string> axes, int priority = 0);

  const std::vector<LayoutDim>& dims() const { return dims_; }
  size_t rank() const { return dims_.size(); }
  // Returns the number of blocks along a dimension.
  int64_t parts(const Mesh& mesh, size_t dim) const;
  // Returns whether every device of the mesh has all of the tensor.
  bool is_replicated(const Mesh& mesh) const;
  // Returns this layout without the axes along which the mesh has one device.
  Layout on(const Mesh& mesh) const;

  // Returns "" if each axis list divides its dimension, or the dimension is padded and not empty; else why
  // the tensor cannot be laid out so. XLA's partitioner would cut such a layout without a word, and refuse
  // the buffers later.
  std::string misfit(const Mesh& mesh, const std::vector<int64_t>& dims) const;
  // Returns these sizes, with the padding of dimensions that their axes do not divide. Throws for a misfit.
  std::vector<int64_t> padded_dims(const Mesh& mesh, const std::vector<int64_t>& dims) const;
  // The size of one device's block, with padding, and where the block of a device begins, which may be after
  // the last element if there is padding. Both throw for a misfit.
  std::vector<int64_t> shard_dims(const Mesh& mesh, const std::vector<int64_t>& dims) const;
  std::vector<int64_t> shard_start(const Mesh& mesh, const std::vector<int64_t>& dims, int64_t device) const;

  // Returns "[data+fsdp, -]", or "[tensor padded, -]", for messages.
  std::string str() const;
  // Returns the attribute of an argument or result: #sdy.sharding<@mesh, [{"data", "fsdp"}p1, {}]>.
  std::string attribute() const;
  bool operator==(const Layout&) const = default;

 private:
  void check(const Mesh& mesh, const std::vector<int64_t>& dims) const;
  std::vector<LayoutDim> dims_;
};

// Returns the layout of a batch: its first dimension over data and fsdp, with the highest priority.
Layout batch_layout(size_t rank);

}  // namespace sluice
SLUICE_API_END
