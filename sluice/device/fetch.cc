// sluice::fetch: copies values to the host while the device continues.
#include <ATen/ops/empty.h>

#include <optional>

#include "sluice/base/result.h"
#include "sluice/base/span.h"
#include "sluice/base/text/join.h"
#include "sluice/device/capture/watch.h"
#include "sluice/device/device.h"
#include "sluice/device/program/ahead.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/report/shortage.h"
#include "sluice/device/runtime.h"
#include "sluice/device/sharding/block_places.h"
#include "sluice/device/sharding/blocks.h"
#include "sluice/device/sharding/layouts.h"
#include "sluice/device/storage.h"
#include "sluice/device/transfer.h"

namespace sluice {
namespace {

// Returns what is known of a value, without its buffers.
device::DataPtr facts_of(const device::Data& data) {
  auto facts = c10::make_intrusive<device::Data>();
  facts->renew(data, data.launch);
  return facts;
}

}  // namespace

// The state of one fetch. A tensor that was pending holds its own handle until a cut gives it data; then the
// copies start.
struct Fetch::State {
  std::mutex mutex;
  at::Tensor pending;
  device::DataPtr data;         // once the copies have started, only the facts of the value
  std::vector<size_t> buffers;  // the numbers of the buffers that are copied
  std::vector<at::Tensor> hosts;
  std::vector<pjrt::Event> copied;
  std::optional<device::BlockPlace> block;  // only this block is copied
  bool counted = false;                     // counted as delivered, in the metrics
  std::optional<Fetch> whole;  // the value is this part of the other's value; there is no copy of its own
  device::LocalBlock part;

  static Fetch of(std::shared_ptr<State> state) {
    Fetch fetch;
    fetch.state_ = std::move(state);
    return fetch;
  }

  // A copy that nobody waited for still writes, so its memory lives until the copy ends.
  ~State() {
    for (size_t i = 0; i < copied.size(); ++i)
      if (!copied[i].ready()) copied[i].on_ready([host = hosts[i]](const base::Status&) {});
  }

  // Starts the copies if the value is on the device by now. The caller holds `mutex`. Then the fetch lets go
  // of the buffers: the plugin lets a program that overwrites them wait for the copies, so the devices need
  // no memory for a second value.
  bool start() {
    if (!copied.empty()) return true;
    if (pending.defined()) {
      auto lock = device::lock_trace();
      auto& storage = *device::LazyStorage::of(pending);
      if (storage.state == device::LazyStorage::State::kLost) throw_error(Code::kDataLoss, *storage.lost);
      if (storage.state != device::LazyStorage::State::kData) return false;
      data = storage.data;
      pending.reset();
    }
    if (data->buffers.empty()) return false;  // only compiled ahead of time: there is nothing to copy
    buffers = block ? buffers_of_block() : device::buffers_to_read(*data);
    for (const size_t number : buffers) {
      const pjrt::Buffer& buffer = data->buffers[number];
      at::Tensor host = at::empty(buffer.type().dims, at::TensorOptions().dtype(data->type->scalar_type));
      auto copy = buffer.to_host(host.mutable_data_ptr(), buffer.type().bytes());
      if (!copy) device::throw_read_error(copy.error(), "copying a value to the host");
      copied.push_back(std::move(*copy));
      hosts.push_back(std::move(host));
    }
    data = facts_of(*data);
    return true;
  }

  // Returns the number of the first buffer that is the block.
  std::vector<size_t> buffers_of_block() const {
    if (data->layout == nullptr) return {0};
    for (const size_t number : device::buffers_to_read(*data))
      if (device::start_of(*data, number) == block->start) return {number};
    throw_error(Code::kInternal, "a block to copy is on the devices of other processes");
  }

  // Returns the block that was copied, without padding.
  at::Tensor copied_block() const {
    at::Tensor part = hosts.front();
    for (size_t i = 0; i < block->sizes.size(); ++i)
      part = part.narrow(static_cast<int64_t>(i), 0, block->sizes[i]);
    return part.contiguous();
  }
};

namespace device {

Fetch fetch_part(const Fetch& block, const LocalBlock& part) {
  auto state = std::make_shared<Fetch::State>();
  state->whole = block;
  state->part = part;
  return Fetch::State::of(std::move(state));
}

Fetch fetch_block(const Blocks& blocks, size_t number) {
  auto state = std::make_shared<Fetch::State>();
  state->data = blocks.data;
  state->block = blocks.places[number];
  const TraceLock lock = lock_trace();
  state->start();
  return Fetch::State::of(std::move(state));
}

}  // namespace device

Fetch fetch(const at::Tensor& tensor) {
  auto state = std::make_shared<Fetch::State>();
  if (!device::on_device(tensor)) {
    throw_error(Code::kInvalidArgument,
                base::str("fetch: expected a tensor on xla:0, found one on ", tensor.device().str()));
  }
  if (device::Watch* watch = device::Watch::current())
    watch->refuse("a value is fetched or logged in it; do so outside with what it returns");
  auto lock = device::lock_trace();
  // Perhaps only one process fetches. Its next operation must not be located in the layer of this tensor.
  device::Trace& trace = device::Trace::get();
  const uint32_t layer = trace.layer;
  const device::Operand value = device::all_here_later(device::read(tensor));
  trace.layer = layer;
  if (value.ref.leaf())
    state->data = trace.leaves[value.ref.node];
  else
    state->pending = device::make_tensor(value);
  if (state->data) state->start();
  return Fetch::State::of(std::move(state));
}

bool Fetch::ready() const {
  if (state_->whole) return state_->whole->ready();
  std::scoped_lock lock(state_->mutex);
  if (!state_->start()) return false;
  for (const pjrt::Event& event : state_->copied) {
    if (!event.ready()) return false;
  }
  return true;
}

bool Fetch::global() const {
  if (state_->whole) return state_->whole->global();
  std::scoped_lock lock(state_->mutex);
  return state_->data && state_->data->sameness == device::Sameness::kGlobal;
}

std::vector<at::Tensor> Fetch::get() const {
  // A tensor of its own, which does not keep the memory of the whole.
  if (state_->whole) return {device::part_at(state_->whole->get().front(), state_->part).clone()};
  std::scoped_lock lock(state_->mutex);
  if (!state_->start()) {
    sync("fetch");
    if (!state_->start() && state_->data) device::check_has_value(*state_->data);
  }
  const base::Span span("wait for a value");
  for (pjrt::Event& event : state_->copied) {
    if (auto status = event.await(); !status)
      device::throw_read_error(status.error(), "copying a value to the host");
  }
  if (!std::exchange(state_->counted, true)) device::note_delivery(state_->hosts);
  auto trace = device::lock_trace();
  device::check_found_values(state_->data->launch);
  if (state_->block) return {state_->copied_block()};
  if (state_->data->layout == nullptr) return state_->hosts;
  return {device::joined_blocks(*state_->data, state_->buffers, state_->hosts)};
}

at::Tensor upload(const std::vector<at::Tensor>& one_per_replica) {
  if (one_per_replica.empty())
    throw_error(Code::kInvalidArgument, "upload: expected one tensor for each replica, found none");
  return device::make_tensor(device::upload_batch(one_per_replica));
}

at::Tensor on_replica(const at::Tensor& tensor, int replica) {
  return device::download(tensor, "sluice::on_replica", device::Sameness::kDifferent, replica);
}

at::Tensor local(const at::Tensor& tensor) {
  return device::download(tensor, "sluice::local", device::Sameness::kProcess);
}

}  // namespace sluice
