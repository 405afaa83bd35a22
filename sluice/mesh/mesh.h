// A mesh: the devices of a run as a grid with named axes, over which tensors are laid out (layout.h).
//
// Axes have the names of kMeshAxes. A mesh keeps them in that order, in any order they are given: the last
// axis varies fastest, so the devices of a `tensor` group are neighbours. Device i is the i-th in row-major
// order.
//
// Errors: all functions throw sluice::Error (kInvalidArgument). Threads: const members from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice {

// data: parts of the batch, with whole weights. fsdp: parts of the batch and of the weights. sequence: parts
// of a sequence. tensor: parts of the products of a layer.
inline constexpr std::array<std::string_view, 4> kMeshAxes = {"data", "fsdp", "sequence", "tensor"};

struct MeshAxis {
  std::string name;
  int64_t size = 1;  // the number of devices along it; -1: the devices that the other axes leave
  bool operator==(const MeshAxis&) const = default;
};

class Mesh {
 public:
  Mesh() = default;  // no axes: one device
  // Each name at most once, sizes of 1 or more, at most one size of -1.
  Mesh(std::vector<MeshAxis> axes);
  // Reads "data=2,fsdp=-1"; "" is a mesh without axes.
  static Mesh parse(std::string_view text);

  const std::vector<MeshAxis>& axes() const { return axes_; }
  bool empty() const { return axes_.empty(); }
  // Returns whether all sizes are known.
  bool complete() const;
  // Returns the number of devices of a complete mesh.
  int64_t devices() const;
  // Returns this mesh over that number of devices: -1 becomes the rest. Throws unless the product of the
  // sizes is that number.
  Mesh over(int64_t devices) const;
  // Returns the number of devices along the axis: 1 if the mesh does not have it. Throws for an unknown name.
  int64_t size(std::string_view axis) const;
  // Returns the place of a device along the axis, from 0.
  int64_t place(int64_t device, std::string_view axis) const;

  // Returns the text that parse() reads: "data=2,fsdp=4".
  std::string str() const;
  // Returns the operation that declares the mesh in a program: sdy.mesh @mesh = <["data"=2, "fsdp"=4]>.
  std::string declaration() const;
  bool operator==(const Mesh&) const = default;

 private:
  std::vector<MeshAxis> axes_;
};

// Throws unless this is a name of kMeshAxes; the error names the nearest one.
void check_mesh_axis(std::string_view name);

}  // namespace sluice
SLUICE_API_END
