#include "sluice/device/sharding/processes.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/formats/hash.h"
#include "sluice/base/result.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/sharding/layouts.h"

namespace sluice::device {

RowPart row_part(const World& world) {
  if (!world.mesh_spans_processes()) return {};
  const int64_t beside = world.mesh->size("sequence") * world.mesh->size("tensor");
  if (beside <= world.mesh_devices) return {world.process_index, world.processes};
  return {world.first_device() / beside, world.mesh->devices() / beside};
}

namespace {

std::string hash_of_host(const at::Tensor& tensor) {
  const at::Tensor host = tensor.resolve_conj().resolve_neg().contiguous();
  return base::str(base::hash_bytes(host.const_data_ptr(), host.nbytes()), ' ', host.scalar_type(), ' ',
                   host.sizes());
}

}  // namespace

void check_equal_in_processes(const std::string& what,
                              const std::vector<std::pair<std::string, at::Tensor>>& hosts) {
  std::vector<std::string> lines;
  for (const auto& [name, host] : hosts) lines.push_back(base::str(name, '\t', hash_of_host(host)));
  const std::vector<std::string> all = gather_from_peers(what, base::join(lines, "\n"));
  for (size_t p = 1; p < all.size(); ++p) {
    const std::vector<std::string> first = base::split(all[0], '\n'), theirs = base::split(all[p], '\n');
    for (size_t i = 0; i < std::max(first.size(), theirs.size()); ++i) {
      if (i < first.size() && i < theirs.size() && first[i] == theirs[i]) continue;
      const std::string& line = i < first.size() ? first[i] : theirs[i];
      throw_error(Code::kFailedPrecondition,
                  base::str(what, ": '", base::printable(line.substr(0, line.find('\t'))),
                            "' differs between process 0 and process ", p,
                            ", and each gives the mesh a part of it. Seed all processes alike "
                            "(torch::manual_seed), or load the same file everywhere"));
    }
  }
}

std::vector<std::string> hashes_of_blocks(const Data& data) {
  std::vector<std::string> hashes;
  for (const size_t number : buffers_to_read(data)) {
    const pjrt::Buffer& buffer = data.buffers[number];
    const at::Tensor host = at::empty(buffer.type().dims, at::TensorOptions().dtype(data.type->scalar_type));
    base::value_or_throw(buffer.read(host.mutable_data_ptr(), host.nbytes()));
    hashes.push_back(base::str(base::join(start_of(data, number), ","), ' ', hash_of_host(host)));
  }
  return hashes;
}

bool is_all_here(const Data& data) {
  if (data.layout == nullptr || !runtime().world.mesh_spans_processes()) return true;
  return static_cast<int64_t>(buffers_to_read(data).size()) == data.layout->parts;
}

namespace {

// Records a value's copy. It replaces nothing, so it is whole on every device.
Operand record_whole(const Operand& value) {
  return record_list("sluice::hold", value, {}, value.sameness)[0];
}

}  // namespace

DataPtr all_here(DataPtr data) {
  if (is_all_here(*data)) return data;
  Trace& trace = Trace::get();
  // What is pending gets a program of its own, and so equal values have one program that gathers them.
  if (trace.first_pending() != nullptr) cut(kHostRead);
  // The program's text must be the same in all processes, also if one has read other tensors before.
  trace.layer = 0;
  const at::Tensor holder = make_tensor(record_whole(trace.leaf(data)));
  cut(kGather);
  return LazyStorage::of(holder)->data;
}

Operand all_here_later(const Operand& value) {
  const Trace& trace = Trace::get();
  const bool known = value.ref.leaf();
  if (known ? is_all_here(*trace.leaves[value.ref.node])
            : !runtime().world.mesh_spans_processes() || value.type->type.numel() == 1)
    return value;
  return record_whole(value);
}

}  // namespace sluice::device
