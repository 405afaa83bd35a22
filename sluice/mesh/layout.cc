#include "sluice/mesh/layout.h"

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice {

Layout::Layout(std::vector<LayoutDim> dims) : dims_(std::move(dims)) {
  std::vector<std::string> seen;
  for (const LayoutDim& dim : dims_) {
    if (dim.priority < 0)
      throw_error(Code::kInvalidArgument,
                  base::str("a layout has the priority ", dim.priority, ": expected 0 (the first) or more"));
    for (const std::string& axis : dim.axes) {
      check_mesh_axis(axis);
      if (std::find(seen.begin(), seen.end(), axis) != seen.end())
        throw_error(Code::kInvalidArgument,
                    base::str("the layout ", str(), " uses the axis ", axis, " twice: use it once"));
      seen.push_back(axis);
    }
  }
}

Layout Layout::replicated(size_t rank) { return Layout(std::vector<LayoutDim>(rank)); }

Layout Layout::along(size_t rank, size_t dim, std::vector<std::string> axes, int priority) {
  std::vector<LayoutDim> dims(rank);
  if (dim >= rank)
    throw_error(Code::kInvalidArgument,
                base::str("a layout over dimension ", dim, " of a tensor with ", rank,
                          rank == 1 ? " dimension" : " dimensions", ": they are numbered from 0"));
  dims[dim] = {std::move(axes), priority};
  return Layout(std::move(dims));
}

int64_t Layout::parts(const Mesh& mesh, size_t dim) const {
  int64_t product = 1;
  for (const std::string& axis : dims_[dim].axes) product *= mesh.size(axis);
  return product;
}

bool Layout::is_replicated(const Mesh& mesh) const {
  for (size_t i = 0; i < dims_.size(); ++i)
    if (parts(mesh, i) != 1) return false;
  return true;
}

Layout Layout::on(const Mesh& mesh) const {
  Layout result = *this;
  for (LayoutDim& dim : result.dims_) {
    std::erase_if(dim.axes, [&](const std::string& axis) { return mesh.size(axis) == 1; });
    if (dim.axes.empty()) dim = {};
  }
  return result;
}

std::string Layout::misfit(const Mesh& mesh, const std::vector<int64_t>& dims) const {
  if (dims.size() != rank())
    return base::str("the layout ", str(), " has ", rank(), rank() == 1 ? " dimension" : " dimensions",
                     ", the tensor has ", dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t count = parts(mesh, i);
    const bool divides = dims_[i].padded || dims[i] % count == 0;
    if (divides && (count == 1 || dims[i] > 0)) continue;
    return base::str("dimension ", i, " of [", base::join(dims, ", "), "] has ", dims[i],
                     dims[i] == 1 ? " element" : " elements", ", which the ", count, " devices along ",
                     base::join(dims_[i].axes, " and "), " do not divide");
  }
  return "";
}

void Layout::check(const Mesh& mesh, const std::vector<int64_t>& dims) const {
  const std::string found = misfit(mesh, dims);
  if (!found.empty())
    throw_error(Code::kInvalidArgument,
                found + ": lay out another dimension, use a mesh of another size, or pad the dimension");
}

std::vector<int64_t> Layout::shard_dims(const Mesh& mesh, const std::vector<int64_t>& dims) const {
  std::vector<int64_t> result = padded_dims(mesh, dims);
  for (size_t i = 0; i < dims.size(); ++i) result[i] /= parts(mesh, i);
  return result;
}

std::vector<int64_t> Layout::padded_dims(const Mesh& mesh, const std::vector<int64_t>& dims) const {
  check(mesh, dims);
  std::vector<int64_t> result = dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t count = parts(mesh, i);
    result[i] = (dims[i] + count - 1) / count * count;
  }
  return result;
}

std::vector<int64_t> Layout::shard_start(const Mesh& mesh, const std::vector<int64_t>& dims,
                                         int64_t device) const {
  std::vector<int64_t> start = shard_dims(mesh, dims);
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t block = 0;
    for (const std::string& axis : dims_[i].axes) block = block * mesh.size(axis) + mesh.place(device, axis);
    start[i] *= block;
  }
  return start;
}

std::string Layout::str() const {
  std::vector<std::string> items;
  for (const LayoutDim& dim : dims_)
    items.push_back(dim.axes.empty() ? "-" : base::join(dim.axes, "+") + (dim.padded ? " padded" : ""));
  return "[" + base::join(items, ", ") + "]";
}

std::string Layout::attribute() const {
  std::vector<std::string> items;
  for (const LayoutDim& dim : dims_) {
    std::vector<std::string> axes;
    for (const std::string& axis : dim.axes) axes.push_back('"' + axis + '"');
    items.push_back(base::str('{', base::join(axes, ", "), '}',
                              !axes.empty() && dim.priority > 0 ? base::str('p', dim.priority) : ""));
  }
  return base::str("#sdy.sharding<@mesh, [", base::join(items, ", "), "]>");
}

Layout batch_layout(size_t rank) { return Layout::along(rank, 0, {"data", "fsdp"}); }

}  // namespace sluice
