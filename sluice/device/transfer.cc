#include "sluice/device/transfer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/error.h"
#include "sluice/base/result.h"
#include "sluice/base/span.h"
#include "sluice/base/text/join.h"
#include "sluice/device/capture/watch.h"
#include "sluice/device/host_copy.h"
#include "sluice/device/operators/host_shapes.h"
#include "sluice/device/program/ahead.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/report/alive.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/report/shortage.h"
#include "sluice/device/runtime.h"
#include "sluice/device/sharding/layouts.h"
#include "sluice/device/storage.h"

namespace sluice::device {

namespace {

// Returns a value of this type without buffers yet.
c10::intrusive_ptr<Data> new_data(TypeRef type, LayoutRef layout, bool differs) {
  auto data = c10::make_intrusive<Data>();
  data->type = type;
  data->layout = layout;
  data->sameness = differs                         ? Sameness::kDifferent
                   : runtime().world.processes > 1 ? Sameness::kProcess
                                                   : Sameness::kGlobal;
  return data;
}

// Uploads what each of the process's devices holds: contiguous tensors.
void upload_buffers(Data& data, const std::function<at::Tensor(size_t device)>& host_of) {
  Runtime* rt = &runtime();
  const stablehlo::Type& type = data.type->type;
  for (size_t r = 0; r < rt->devices.size(); ++r) {
    const at::Tensor contiguous = host_of(r);
    // A large tensor's memory is shared if the plugin can do that; the callback keeps it alive. A small one
    // is copied.
    const bool small = contiguous.nbytes() <= 4096;
    auto buffer = rt->client->put(
        contiguous.const_data_ptr(),
        data.layout == nullptr ? type : block_type(*rt->world.mesh, type, data.layout), *rt->devices[r],
        small ? pjrt::HostCopy::kDuringCall : pjrt::HostCopy::kShare,
        small ? std::function<void()>() : [contiguous] {});
    if (!buffer) {
      throw_error(explained(
          buffer.error(),
          base::str("copying a ", type.str(), " of the host to device ", rt->devices[r]->id()), nullptr));
    }
    data.buffers.push_back(std::move(*buffer));
  }
  Data* const made = &data;
  note_alive({&made, 1});
  Metrics& metrics = Metrics::get();
  std::scoped_lock lock(metrics.mutex);
  ++metrics.uploads;
  metrics.bytes_to_device += static_cast<int64_t>(data.buffers.front().type().bytes() * rt->devices.size());
}

}  // namespace

DataPtr upload_data(const std::vector<at::Tensor>& hosts, LayoutRef layout, RowPart rows) {
  Runtime* rt = &runtime();
  std::vector<int64_t> dims = hosts.front().sizes().vec();
  const int64_t first_row = rows.parts > 1 ? rows.part * dims[0] : 0;
  if (rows.parts > 1) dims[0] *= rows.parts;
  const TypeRef type = intern(to_dtype(hosts.front().scalar_type()), dims);
  base::Span span("copy to the device");
  span.bytes(static_cast<int64_t>(type->type.bytes() * hosts.size()));
  const bool split = hosts.size() > 1;
  auto data = new_data(type, layout, split);
  if (rt->ahead) return data;
  if (split && hosts.size() != static_cast<size_t>(rt->world.local_replicas)) {
    throw_error(Code::kInvalidArgument,
                base::str("expected one tensor for each of ", rt->world.local_replicas, " replicas, found ",
                          hosts.size()));
  }
  upload_buffers(*data, [&](size_t r) {
    const at::Tensor& host = hosts[split ? r : 0];
    if (host.scalar_type() != type->scalar_type || !host.sizes().equals(hosts.front().sizes())) {
      throw_error(Code::kInvalidArgument,
                  base::str("expected the same shape and element type on every replica, found ", host.sizes(),
                            " on replica ", r, " and ", hosts[0].sizes(), " on replica 0"));
    }
    return layout == nullptr ? host.contiguous()
                             : block_of(*rt->world.mesh, host, layout,
                                        rt->world.first_device() + static_cast<int64_t>(r), dims, first_row);
  });
  return data;
}

DataPtr upload_blocks(TypeRef type, LayoutRef layout,
                      const std::function<at::Tensor(size_t device)>& block_of_device) {
  base::Span span("copy to the device");
  span.bytes(static_cast<int64_t>(type->type.bytes()));
  auto data = new_data(type, layout, false);
  if (!runtime().ahead) upload_buffers(*data, block_of_device);
  return data;
}

DataPtr upload_batch(const std::vector<at::Tensor>& one_per_replica) {
  const at::Tensor& first = one_per_replica.front();
  const World& world = runtime().world;
  const LayoutRef layout = layout_of_upload(first);
  DataPtr data = upload_data(one_per_replica, layout, layout == nullptr ? RowPart() : row_part(world));
  // Each row comes from one process, or from processes that read the same part of the batch.
  if (world.mesh_spans_processes()) data->sameness = Sameness::kGlobal;
  return data;
}

namespace {

// Returns the pending results of one element other than the one that is read: the program likely reads some
// of them next. Numbers that are kept from step to step (a count of batches) are left out.
std::vector<at::Tensor> numbers_beside(const Operand& read) {
  constexpr size_t kMaxNumbers = 8;
  Trace& trace = Trace::get();
  std::vector<Ref> found;
  for (LazyStorage* s = trace.first_pending(); s != nullptr && found.size() < kMaxNumbers; s = s->next) {
    const bool kept = s->replaced_leaf != LazyStorage::kNoLeaf || s->name != 0 || s->label != 0;
    if (kept || s->type->type.numel() != 1 || s->ref == read.ref) continue;
    if (std::find(found.begin(), found.end(), s->ref) == found.end()) found.push_back(s->ref);
  }
  std::vector<at::Tensor> holders;
  for (const Ref ref : found) {
    const Operand number = trace.result(ref.node, ref.output);
    if (number.sameness == Sameness::kGlobal) holders.push_back(make_tensor(number));
  }
  return holders;
}

// Starts a value's copy to the host. If that fails, a later read reports it.
void start_copy(Data& data) {
  if (data.buffers.empty() || data.on_host || data.layout != nullptr) return;
  auto copy = std::make_shared<HostCopy>();
  copy->value = at::empty(data.type->type.dims, at::TensorOptions().dtype(data.type->scalar_type));
  auto copied = data.buffers.front().to_host(copy->value.mutable_data_ptr(), data.type->type.bytes());
  if (!copied) return;
  copy->copied = std::move(*copied);
  copy->copied.on_ready([memory = copy->value](const base::Status&) {});  // lives until it is written
  data.on_host = std::move(copy);
}

}  // namespace

namespace {

// Makes the cut for a read of a pending value. Other pending numbers are copied in the same wait.
void cut_for_read(const Operand& value) {
  const std::vector<at::Tensor> beside = numbers_beside(value);
  cut(kHostRead);
  for (const at::Tensor& number : beside) {
    const LazyStorage& storage = *LazyStorage::of(number);
    if (storage.state == LazyStorage::State::kData) start_copy(*storage.data);
  }
}

}  // namespace

DataPtr materialize(const at::Tensor& tensor) {
  if (DataPtr data = data_of(tensor)) {
    check_opening(*data);
    return data;
  }
  const Operand value = read(tensor);
  if (value.ref.leaf()) return Trace::get().leaves[value.ref.node];
  at::Tensor holder = make_tensor(value);
  cut_for_read(value);
  return LazyStorage::of(holder)->data;
}

namespace {

// Returns whether the host can make the tensor from its storage's value, without a program: the storage stays
// with the host, or the tensor covers all of it, in any shape, order and element type. For example,
// torch::save sees parameters as one dimension.
bool is_seen_in_storage(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const LazyStorage& storage = *LazyStorage::of(impl);
  if (stays_with_host(tensor)) return storage.type->type.bytes() == storage.nbytes();
  const bool valued =
      storage.state == LazyStorage::State::kData || storage.state == LazyStorage::State::kPending;
  return valued && Watch::current() == nullptr && impl.storage_offset() == 0 &&
         impl.is_non_overlapping_and_dense() &&
         static_cast<size_t>(impl.numel()) * impl.itemsize() == storage.nbytes() &&
         storage.type->type.bytes() == storage.nbytes();
}

// The data that a read copies to the host, and its strides there.
struct Source {
  DataPtr data;
  bool whole = false;            // `data` is the whole storage's value, and the tensor a view of it
  std::vector<int64_t> strides;  // the strides of the storage's value, as in LazyStorage
};

// Returns the source of a read; cuts if the value is pending. The caller holds the lock.
Source source_of(const at::Tensor& tensor) {
  if (!is_seen_in_storage(tensor)) return {all_here(materialize(tensor)), false, {}};
  LazyStorage& storage = *LazyStorage::of(tensor);
  DataPtr data = data_of_storage(storage);
  return {all_here(std::move(data)), true, storage.strides};
}

// Returns the tensor, row-major, from a copy of its source.
at::Tensor seen_as(const at::Tensor& tensor, const Source& source, const at::Tensor& host) {
  if (!source.whole) return host;
  at::Tensor memory = host;
  if (!source.strides.empty())
    memory = at::empty_strided(host.sizes(), source.strides, host.options()).copy_(host);
  at::Tensor seen = at::empty({0}, host.options().dtype(tensor.scalar_type()));
  seen.set_(memory.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  if (tensor.is_conj()) seen = seen.conj();
  if (tensor.is_neg()) seen = seen.neg();
  return seen.contiguous().resolve_conj();
}

}  // namespace

namespace {

// Throws if a value is less the same on the replicas than the read needs.
void check_sameness(const at::Tensor& tensor, std::string_view what, Sameness wanted) {
  if (runtime().ahead) return;  // no value exists at all, which the read reports
  if (const LazyStorage& storage = *LazyStorage::of(tensor);
      storage.state == LazyStorage::State::kData && storage.data->sameness <= wanted)
    return;
  const Operand value = read(tensor);
  if (value.sameness <= wanted) return;
  const World& world = runtime().world;
  if (value.sameness == Sameness::kProcess) {
    throw_error(Code::kFailedPrecondition,
                base::str(what, ": the value came from the host, and the ", world.processes,
                          " processes may hold different ones; sluice::local(tensor) reads this process's, ",
                          "sluice::broadcast(tensor) makes them one"));
  }
  throw_error(
      Code::kFailedPrecondition,
      base::str(what, ": the value differs between the ", world.replicas(), " replicas (",
                since(Trace::get().origin(value.ref)),
                "); sluice::mean(tensor) is their mean, sluice::on_replica(tensor, 0) reads one of them"));
}

at::Tensor read_buffer(const Data& data, size_t number, std::string_view what) {
  const pjrt::Buffer& buffer = data.buffers[number];
  at::Tensor host = at::empty(buffer.type().dims, at::TensorOptions().dtype(data.type->scalar_type));
  const size_t bytes = buffer.type().bytes();
  if (bytes == 0) return host;
  auto read = buffer.read(host.mutable_data_ptr(), bytes);
  if (!read) throw_read_error(read.error(), what);
  return host;
}

at::Tensor read_replica(const Data& data, size_t replica, std::string_view what) {
  base::Span span("copy to the host");
  span.bytes(static_cast<int64_t>(data.type->type.bytes()));
  if (data.layout == nullptr) return read_buffer(data, replica, what);
  const std::vector<size_t> buffers = buffers_to_read(data);
  std::vector<at::Tensor> blocks;
  for (const size_t buffer : buffers) blocks.push_back(read_buffer(data, buffer, what));
  return joined_blocks(data, buffers, blocks);
}

// Waits for the copy and returns its tensor, which the copy still owns.
at::Tensor value_of(HostCopy& copy, std::string_view what) {
  std::scoped_lock waiting(copy.mutex);
  if (auto status = copy.copied.await(); !status) throw_read_error(status.error(), what);
  return copy.value;
}

// Reads a value. One copy on the host serves every read of a number, and of a value that stays with the host.
at::Tensor read_or_reuse(Data& data, size_t replica, std::string_view what) {
  if (replica != 0 || (data.type->type.numel() != 1 && !data.with_host))
    return read_replica(data, replica, what);
  std::shared_ptr<HostCopy> copy;
  {
    TraceLock lock = lock_trace();
    start_copy(data);
    copy = data.on_host;
  }
  if (!copy) return read_replica(data, replica, what);
  const base::Span span("copy to the host");
  return value_of(*copy, what).clone();
}

}  // namespace

DataPtr upload_and_keep(const at::Tensor& host) {
  DataPtr data = upload_data({host});
  data->on_host = std::make_shared<HostCopy>();
  data->on_host->value = host;
  return data;
}

at::Tensor copy_on_host(Data& data, std::string_view what) {
  const double start = base::monotonic_seconds();
  check_opening(data);
  check_has_value(data);
  if (data.on_host) return value_of(*data.on_host, what);
  start_copy(data);
  if (!data.on_host) return read_replica(data, 0, what);
  const at::Tensor host = value_of(*data.on_host, what);
  check_found_values(data.launch);
  note_host_read(what, base::monotonic_seconds() - start, static_cast<int64_t>(data.type->type.bytes()));
  return host;
}

DataPtr data_of_storage(LazyStorage& storage) {
  if (storage.state == LazyStorage::State::kPending)
    cut_for_read({storage.ref, storage.type, Trace::get().nodes[storage.ref.node].sameness});
  else
    check_opening(*storage.data);
  return storage.data;
}

at::Tensor download(const at::Tensor& tensor, std::string_view what, Sameness wanted, int replica) {
  const double start = base::monotonic_seconds();
  Source source;
  if (Watch* watch = Watch::current()) watch->refuse(base::str("the host reads a value in it (", what, ")"));
  {
    TraceLock lock = lock_trace();
    Runtime& rt = runtime();
    if (rt.options.strict && !Trace::get().nodes.empty() && rt.launches > 0 &&
        wanted != Sameness::kDifferent) {
      throw_error(Code::kFailedPrecondition,
                  base::str("--strict: ", what,
                            " reads a value in the middle of a step and makes the host wait; "
                            "use session.log_every, or read after session.step"));
    }
    check_sameness(tensor, what, wanted);
    if (replica < 0 || replica >= rt.world.local_replicas) {
      throw_error(Code::kOutOfRange, base::str("there is no replica ", replica, "; this process has ",
                                               rt.world.local_replicas, ", numbered from 0"));
    }
    source = source_of(tensor);
    check_has_value(*source.data);
  }
  Data& data = *source.data;
  const at::Tensor host = read_or_reuse(data, static_cast<size_t>(replica), what);
  {
    TraceLock lock = lock_trace();
    check_found_values(data.launch);
  }
  note_host_read(what, base::monotonic_seconds() - start, static_cast<int64_t>(data.type->type.bytes()));
  return seen_as(tensor, source, host);
}

std::vector<at::Tensor> download_all(const at::Tensor& tensor) {
  Source source;
  if (Watch* watch = Watch::current()) watch->refuse("the host reads a value in it");
  {
    TraceLock lock = lock_trace();
    source = source_of(tensor);
  }
  const Data& data = *source.data;
  std::vector<at::Tensor> hosts;
  for (size_t r = 0; r < std::min<size_t>(data.buffers.size(), runtime().world.local_replicas); ++r)
    hosts.push_back(seen_as(tensor, source, read_replica(data, r, "copy to the host")));
  TraceLock lock = lock_trace();
  check_found_values(data.launch);
  return hosts;
}

}  // namespace sluice::device
