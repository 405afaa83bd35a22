#include "sluice/pjrt/program/device_group.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "sluice/pjrt/proto_reader.h"

namespace sluice::pjrt {
namespace {

using Numbers = std::vector<int64_t>;

// More devices than this in one list are no list.
constexpr int64_t kMaxDevices = 1 << 20;

// Adds the numbers of a repeated field, packed or not.
void add_numbers(const ProtoReader& field, Numbers& numbers) {
  if (!field.is_bytes()) {
    numbers.push_back(static_cast<int64_t>(field.number()));
    return;
  }
  for (ProtoReader packed(field.bytes()); !packed.at_end();)
    numbers.push_back(static_cast<int64_t>(packed.varint()));
}

// Reads a ReplicaGroup: replica_ids 1.
Numbers read_list(std::string_view bytes, bool& broken) {
  Numbers ids;
  ProtoReader message(bytes);
  while (message.next())
    if (message.field() == 1) add_numbers(message, ids);
  broken = broken || message.broken();
  return ids;
}

int64_t product(const Numbers& sizes) {
  int64_t all = 1;
  for (const int64_t size : sizes) {
    if (size < 1 || all > kMaxDevices / size) return 0;
    all *= size;
  }
  return all;
}

// Returns the first `count` numbers of an array of these sizes, filled in row-major order and then
// transposed.
Numbers first_of_transposed(const Numbers& sizes, const Numbers& order, int64_t count) {
  Numbers strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  Numbers found;
  for (int64_t place = 0; place < count; ++place) {
    int64_t rest = place, number = 0;
    for (size_t i = order.size(); i-- > 0;) {
      const auto dim = static_cast<size_t>(order[i]);
      number += rest % sizes[dim] * strides[dim];
      rest /= sizes[dim];
    }
    found.push_back(number);
  }
  return found;
}

bool is_permutation(Numbers order, size_t size) {
  std::sort(order.begin(), order.end());
  Numbers all(size);
  std::iota(all.begin(), all.end(), 0);
  return order == all;
}

// Reads an IotaReplicaGroupListProto: num_replica_groups 1, num_devices_per_group 2, iota_reshape_dims 3,
// iota_transpose_perm 4.
Numbers read_array(std::string_view bytes, bool& broken) {
  int64_t groups = 0, size = 0;
  Numbers sizes, order;
  ProtoReader message(bytes);
  while (message.next()) {
    if (message.field() == 1) groups = static_cast<int64_t>(message.number());
    if (message.field() == 2) size = static_cast<int64_t>(message.number());
    if (message.field() == 3) add_numbers(message, sizes);
    if (message.field() == 4) add_numbers(message, order);
  }
  const int64_t all = product(sizes);
  if (message.broken() || all == 0 || groups < 1 || size < 1 || size > all || all % size != 0 ||
      all / size != groups || !is_permutation(order, sizes.size())) {
    broken = true;
    return {};
  }
  return first_of_transposed(sizes, order, size);
}

// Reads a MeshProto's axes: axes 1 {name 1, size 2}.
Numbers read_mesh(std::string_view bytes, bool& broken) {
  Numbers sizes;
  ProtoReader mesh(bytes);
  while (mesh.next()) {
    if (mesh.field() != 1) continue;
    ProtoReader axis(mesh.bytes());
    sizes.push_back(1);
    while (axis.next())
      if (axis.field() == 2) sizes.back() = static_cast<int64_t>(axis.number());
    broken = broken || axis.broken();
  }
  broken = broken || mesh.broken();
  return sizes;
}

// An axis of a mesh, or a part of one: the axis is split into `before` × `size` × the rest.
struct AxisPart {
  size_t axis = 0;
  int64_t before = 1, size = 0;  // 0: all of the axis
};

// Reads an AxisRefProto: mesh_axis_index 1, sub_axis_info 2 {pre_size 1, size 2}.
AxisPart read_axis(std::string_view bytes, bool& broken) {
  AxisPart read;
  ProtoReader message(bytes);
  while (message.next()) {
    if (message.field() == 1) read.axis = static_cast<size_t>(message.number());
    if (message.field() != 2) continue;
    ProtoReader part(message.bytes());
    while (part.next()) {
      if (part.field() == 1) read.before = static_cast<int64_t>(part.number());
      if (part.field() == 2) read.size = static_cast<int64_t>(part.number());
    }
    broken = broken || part.broken();
  }
  broken = broken || message.broken();
  return read;
}

// Returns whether an axis can be split into `before` × `size` × the rest.
bool splits(int64_t axis, int64_t before, int64_t size) {
  return before > 0 && size > 0 && before <= axis && size <= axis / before && axis % (before * size) == 0;
}

// Reads a MeshAxesReplicaGroupListProto: mesh 1, axes 2.
Numbers read_axes(std::string_view bytes, bool& broken) {
  Numbers sizes, group = {0};
  std::vector<AxisPart> parts;
  ProtoReader message(bytes);
  while (message.next()) {
    if (message.field() == 1) sizes = read_mesh(message.bytes(), broken);
    if (message.field() == 2) parts.push_back(read_axis(message.bytes(), broken));
  }
  broken = broken || message.broken() || product(sizes) == 0;
  for (const AxisPart& part : parts) {
    const int64_t all = part.axis < sizes.size() ? sizes[part.axis] : 0;
    const int64_t size = part.size == 0 ? all : part.size;
    broken = broken || !splits(all, part.before, size);
    if (broken) return {};
    int64_t stride = all / (part.before * size);
    for (size_t i = part.axis + 1; i < sizes.size(); ++i) stride *= sizes[i];
    Numbers longer;
    for (const int64_t device : group)
      for (int64_t i = 0; i < size; ++i) longer.push_back(device + i * stride);
    group = std::move(longer);
  }
  return broken ? Numbers() : group;
}

// Reads a CollectiveDeviceListProto: replica_groups 1, iota_replica_group_list 2.
Numbers read_device_list(std::string_view bytes, bool& broken) {
  Numbers group;
  ProtoReader message(bytes);
  while (message.next()) {
    if (message.field() == 1 && group.empty()) group = read_list(message.bytes(), broken);
    if (message.field() == 2) group = read_array(message.bytes(), broken);
  }
  broken = broken || message.broken();
  return group;
}

// Reads a SourceTarget: source 1, target 2.
std::pair<int64_t, int64_t> read_pair(std::string_view bytes, bool& broken) {
  std::pair<int64_t, int64_t> read;
  ProtoReader message(bytes);
  while (message.next()) {
    if (message.field() == 1) read.first = static_cast<int64_t>(message.number());
    if (message.field() == 2) read.second = static_cast<int64_t>(message.number());
  }
  broken = broken || message.broken();
  return read;
}

// Returns the devices that pairs connect with the first one.
Numbers connected(const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  if (pairs.empty()) return {};
  int64_t first = std::min(pairs.front().first, pairs.front().second);
  for (const auto& [from, to] : pairs) first = std::min({first, from, to});
  std::set<int64_t> group = {first};
  for (size_t before = 0; before != group.size();) {
    before = group.size();
    for (const auto& [from, to] : pairs)
      if (group.count(from) + group.count(to) > 0) group.insert({from, to});
  }
  return {group.begin(), group.end()};
}

}  // namespace

std::vector<int64_t> device_group(std::string_view instruction, bool& broken) {
  Numbers group;
  std::vector<std::pair<int64_t, int64_t>> pairs;
  ProtoReader message(instruction);
  while (message.next()) {
    switch (message.field()) {
      case 49:  // replica_groups, of older compilers
        if (group.empty()) group = read_list(message.bytes(), broken);
        break;
      case 52:  // source_target_pairs
        pairs.push_back(read_pair(message.bytes(), broken));
        break;
      case 87:  // collective_device_list
        group = read_device_list(message.bytes(), broken);
        break;
      case 92:  // iota_collective_device_list
        group = read_array(message.bytes(), broken);
        break;
      case 93:  // mesh_axes_replica_group_list
        group = read_axes(message.bytes(), broken);
        break;
      default:
        break;
    }
  }
  broken = broken || message.broken();
  if (!pairs.empty()) group = connected(pairs);
  std::sort(group.begin(), group.end());
  return group;
}

}  // namespace sluice::pjrt
