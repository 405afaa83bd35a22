#include "sluice/mesh/mesh.h"

#include <algorithm>
#include <limits>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice {
namespace {

size_t rank_of(std::string_view name) {
  return static_cast<size_t>(std::find(kMeshAxes.begin(), kMeshAxes.end(), name) - kMeshAxes.begin());
}

[[noreturn]] void refuse(const std::string& message) { throw_error(Code::kInvalidArgument, message); }

MeshAxis parse_axis(std::string_view item, std::string_view text) {
  const size_t equals = item.find('=');
  if (equals == std::string_view::npos)
    refuse(base::str("the mesh \"", text, "\" has the part \"", item,
                     "\": expected an axis and its size, as in fsdp=4 or fsdp=-1"));
  const std::string name(base::trim(item.substr(0, equals)));
  const std::string size(base::trim(item.substr(equals + 1)));
  const auto number = base::number_of<int64_t>(size);
  if (!number)
    refuse(base::str("the mesh \"", text, "\" gives ", name, " the size \"", size,
                     "\": expected a number of devices, or -1 for the rest"));
  return {name, *number};
}

}  // namespace

void check_mesh_axis(std::string_view name) {
  if (rank_of(name) < kMeshAxes.size()) return;
  const std::string near = base::nearest(name, {kMeshAxes.begin(), kMeshAxes.end()});
  refuse(base::str("\"", name, "\" is not an axis of a mesh: expected ", base::join(kMeshAxes, ", "),
                   near.empty() ? std::string() : base::str("; did you mean ", near, "?")));
}

Mesh::Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {
  for (const MeshAxis& axis : axes_) {
    check_mesh_axis(axis.name);
    if (axis.size < 1 && axis.size != -1)
      refuse(base::str("the axis ", axis.name, " of a mesh has the size ", axis.size,
                       ": expected 1 or more devices, or -1 for the rest"));
  }
  std::stable_sort(axes_.begin(), axes_.end(),
                   [](const MeshAxis& a, const MeshAxis& b) { return rank_of(a.name) < rank_of(b.name); });
  for (size_t i = 1; i < axes_.size(); ++i)
    if (axes_[i].name == axes_[i - 1].name)
      refuse(base::str("the mesh has the axis ", axes_[i].name, " twice: give it once"));
  if (std::count_if(axes_.begin(), axes_.end(), [](const MeshAxis& axis) { return axis.size == -1; }) > 1)
    refuse(base::str("the mesh ", str(), " has several sizes of -1: only one axis can get the rest"));
}

Mesh Mesh::parse(std::string_view text) {
  std::vector<MeshAxis> axes;
  if (!base::trim(text).empty())
    for (const std::string& item : base::split(text, ',')) axes.push_back(parse_axis(base::trim(item), text));
  return Mesh(std::move(axes));
}

bool Mesh::complete() const {
  return std::all_of(axes_.begin(), axes_.end(), [](const MeshAxis& axis) { return axis.size != -1; });
}

int64_t Mesh::devices() const {
  int64_t product = 1;
  for (const MeshAxis& axis : axes_) {
    if (axis.size == -1)
      refuse(base::str("the mesh ", str(), " has no number of devices yet: -1 is the rest"));
    if (product > std::numeric_limits<int32_t>::max() / axis.size)
      refuse(base::str("the mesh ", str(), " has more devices than any machine"));
    product *= axis.size;
  }
  return product;
}

Mesh Mesh::over(int64_t devices) const {
  Mesh whole = *this;
  for (MeshAxis& axis : whole.axes_) axis.size = std::max<int64_t>(axis.size, 1);
  const int64_t known = whole.devices();
  if (devices < 1 || devices % known != 0 || (complete() && devices != known))
    refuse(base::str("the mesh ", str(), " needs ", complete() ? "" : "a multiple of ", known,
                     known == 1 ? " device" : " devices", ", found ", devices,
                     ": change a size, or the number of devices"));
  for (size_t i = 0; i < axes_.size(); ++i)
    if (axes_[i].size == -1) whole.axes_[i].size = devices / known;
  return whole;
}

int64_t Mesh::size(std::string_view name) const {
  check_mesh_axis(name);
  for (const MeshAxis& axis : axes_)
    if (axis.name == name) return axis.size;
  return 1;
}

int64_t Mesh::place(int64_t device, std::string_view name) const {
  check_mesh_axis(name);
  for (size_t i = axes_.size(); i-- > 0;) {
    if (axes_[i].name == name) return device % axes_[i].size;
    device /= axes_[i].size;
  }
  return 0;
}

std::string Mesh::str() const {
  std::vector<std::string> items;
  for (const MeshAxis& axis : axes_) items.push_back(base::str(axis.name, '=', axis.size));
  return base::join(items, ",");
}

std::string Mesh::declaration() const {
  std::vector<std::string> items;
  for (const MeshAxis& axis : axes_) items.push_back(base::str('"', axis.name, "\"=", axis.size));
  return base::str("sdy.mesh @mesh = <[", base::join(items, ", "), "]>");
}

}  // namespace sluice
