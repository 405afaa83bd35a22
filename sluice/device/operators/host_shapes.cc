#include "sluice/device/operators/host_shapes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/capture/watch.h"
#include "sluice/device/host_copy.h"
#include "sluice/device/program/call_arguments.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/report/frames.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/report/recompiles.h"
#include "sluice/device/runtime.h"
#include "sluice/device/transfer.h"

namespace sluice::device {
namespace {

// A place whose data have given this number of lengths will give others.
constexpr size_t kManyLengths = 2;
// The largest number of elements of an operand of an operation on the host. It does not apply to the operand
// that the operation picks from or writes into.
constexpr int64_t kSmall = 1 << 18;
// The largest storage, in bytes, of any operand of an operation on the host.
constexpr size_t kMediumBytes = size_t{16} << 20;

constexpr std::string_view kPick[] = {"aten::index", "aten::index_select", "aten::gather", "aten::take"};
constexpr std::string_view kPut[] = {
    "aten::index_put",    "aten::index_put_",     "aten::_index_put_impl_", "aten::index_add",
    "aten::index_add_",   "aten::index_copy",     "aten::index_copy_",      "aten::index_fill",
    "aten::index_fill_",  "aten::scatter",        "aten::scatter_",         "aten::scatter_add",
    "aten::scatter_add_", "aten::masked_scatter", "aten::masked_scatter_",  "aten::put",
    "aten::put_"};

template <size_t kCount>
bool is_among(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

struct Lengths {
  std::set<int64_t> seen;
  int64_t last = 0;   // the length of the newest result, once the lengths vary
  bool said = false;  // that the lengths vary
};

struct Places {
  std::unordered_map<uint64_t, Lengths> lengths;  // the key is a hash of the place's frames
  bool any_stays = false;                         // whether any result was ever kept with the host
};
Places& places() {
  static auto* all = new Places();
  return *all;
}

void keep_with_host(const at::Tensor& tensor) {
  LazyStorage& storage = *LazyStorage::of(tensor);
  if (storage.state != LazyStorage::State::kData) return;
  storage.data->with_host = true;
  places().any_stays = true;
}

bool is_small(const at::Tensor& tensor) {
  return tensor.numel() <= kSmall && LazyStorage::of(tensor)->nbytes() <= kMediumBytes;
}

// Returns whether the storage's value determines all its bytes; an empty storage counts as well.
bool is_known(const LazyStorage& storage) {
  using State = LazyStorage::State;
  return storage.state == State::kEmpty ||
         (storage.state != State::kLost && storage.type->type.bytes() == storage.nbytes());
}

// Returns the value of a fill or a zero that is only recorded yet, without a program; undefined for any other
// value. LibTorch's composed operations make constants that are as long as their operands.
at::Tensor constant_on_host(const LazyStorage& storage) {
  if (storage.state != LazyStorage::State::kPending || storage.ref.leaf()) return {};
  const Trace& trace = Trace::get();
  const Node& node = trace.nodes[storage.ref.node];
  const at::TensorOptions options = at::TensorOptions().dtype(storage.type->scalar_type);
  const std::string_view row = node.instance->row->name;
  if (row == "aten::zero" || row == "sluice::zeros") return at::zeros(storage.type->type.dims, options);
  if (row != "aten::fill.Scalar" || node.instance->slots.size() != 1) return {};
  const Number& value = trace.numbers[node.first_number];
  return node.instance->slots[0].kind == ScalarClass::kI64
             ? at::full(storage.type->type.dims, value.integer, options)
             : at::full(storage.type->type.dims, value.real, options);
}

// Returns whether the tensor is a constant, still only recorded, of the length that the newest result of a
// place with varying lengths has. A gradient into which values are put begins as such a constant.
bool is_constant_of_varying_length(const at::Tensor& tensor) {
  if (!constant_on_host(*LazyStorage::of(tensor)).defined()) return false;
  return std::any_of(places().lengths.begin(), places().lengths.end(), [&](const auto& place) {
    return place.second.said &&
           std::find(tensor.sizes().begin(), tensor.sizes().end(), place.second.last) != tensor.sizes().end();
  });
}

// The host memory of storages during one call, with the same layout.
class HostMemory {
 public:
  // Returns a view of the storage's memory with the tensor's layout. Writes to it are lost without store().
  at::Tensor view(const at::Tensor& tensor, bool is_written) {
    at::Tensor& memory = memories_[LazyStorage::of(tensor)];
    if (!memory.defined()) memory = fetch(tensor);
    if (is_written && !owned_.contains(LazyStorage::of(tensor))) {
      // The clone keeps gaps and the order of dimensions.
      memory = memory.clone(at::MemoryFormat::Preserve);
      owned_.insert(LazyStorage::of(tensor));
    }
    at::Tensor seen = at::empty({0}, at::TensorOptions().dtype(tensor.scalar_type()));
    seen.set_(memory.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
    if (tensor.is_conj()) seen = seen.conj();
    if (tensor.is_neg()) seen = seen._neg_view();
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
      seen.unsafeGetTensorImpl()->set_wrapped_number(true);
    return seen;
  }

  // Makes the written memory the value of the tensor's storage. If the storage was pending, `stays` says
  // whether it stays with the host from now on.
  void store(const at::Tensor& tensor, bool stays) {
    LazyStorage& storage = *LazyStorage::of(tensor);
    const at::Tensor& memory = memories_.at(&storage);
    const bool was_empty = storage.state == LazyStorage::State::kEmpty;
    if (storage.state != LazyStorage::State::kPending) stays = was_empty || storage.data->with_host;
    at::Tensor value = at::empty({0}, memory.options());
    std::vector<int64_t> strides = was_empty ? std::vector<int64_t>() : storage.strides;
    if (was_empty) {
      value = at::empty({0}, at::TensorOptions().dtype(tensor.scalar_type()));
      const auto count = static_cast<int64_t>(storage.nbytes() / tensor.itemsize());
      const bool is_all = tensor.is_contiguous() && tensor.numel() == count;
      value.set_(memory.storage(), 0, is_all ? tensor.sizes() : at::IntArrayRef(count));
    } else if (strides.empty()) {
      value.set_(memory.storage(), 0, storage.type->type.dims);
    } else {
      value.set_(memory.storage(), 0, storage.type->type.dims, strides);
    }
    set_data(storage, upload_and_keep(value.contiguous()), std::move(strides));
    if (stays) keep_with_host(tensor);
  }

 private:
  static at::Tensor fetch(const at::Tensor& tensor) {
    LazyStorage& storage = *LazyStorage::of(tensor);
    if (storage.state == LazyStorage::State::kEmpty)
      return at::zeros({static_cast<int64_t>(storage.nbytes())}, at::kByte);
    at::Tensor host = constant_on_host(storage);
    if (!host.defined()) host = copy_on_host(*all_here(data_of_storage(storage)), "a small operand");
    if (storage.strides.empty()) return host;
    return at::empty_strided(host.sizes(), storage.strides, host.options()).copy_(host);
  }

  std::map<const LazyStorage*, at::Tensor> memories_;
  std::set<const LazyStorage*> owned_;  // the storages whose memory belongs to this call
};

// Returns whether this call is to run on the host.
bool is_for_host(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  // LibTorch's convolutions for third-party devices have no kernel for the CPU.
  if (!base::starts_with(schema.name(), "aten::") || base::ends_with(schema.name(), "_overrideable"))
    return false;
  for (const c10::Argument& argument : schema.arguments())
    if (argument.is_out() || argument.name() == "generator") return false;
  for (const c10::Argument& result : schema.returns())
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return false;
  const bool picks = is_among(kPick, schema.name()) || is_among(kPut, schema.name());
  bool stays = false, small = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (!on_device(tensor)) return;
      stays = stays || stays_with_host(tensor);
      const bool fits =
          picks && i == 0 ? LazyStorage::of(tensor)->nbytes() <= kMediumBytes : is_small(tensor);
      small = small && fits && is_known(*LazyStorage::of(tensor));
    });
  }
  return stays && small;
}

void count_call() {
  Metrics& metrics = Metrics::get();
  std::scoped_lock lock(metrics.mutex);
  ++metrics.counters.fallbacks;
  ++metrics.fallbacks["what is made of results of ever new lengths"];
}

bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// Returns a result of the host's call as a tensor of the device.
at::Tensor placed(const at::Tensor& host, bool stays) {
  if (!host.defined()) return host;
  at::Tensor tensor = make_tensor(upload_and_keep(host.contiguous()));
  if (stays && host.numel() <= kSmall) keep_with_host(tensor);
  return tensor;
}

// Makes constants with the shape of a value that stays with the host stay there, too: a backward pass begins
// with one.
at::Tensor filled_like(const at::Tensor& self, const at::Scalar& value, std::optional<at::ScalarType> dtype,
                       std::optional<at::Layout> layout, std::optional<at::Device> device,
                       std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
  at::Tensor made = at::empty_like(self, dtype, layout, device, pin, format);
  {
    const TraceLock lock = lock_trace();
    if (on_device(made) && on_device(self) && stays_with_host(self) && is_small(made)) {
      write(made, upload_and_keep(at::full(made.sizes(), value, made.scalar_type())));
      keep_with_host(made);
      return made;
    }
  }
  return made.fill_(value);
}

at::Tensor ones_like(const at::Tensor& self, std::optional<at::ScalarType> dtype,
                     std::optional<at::Layout> layout, std::optional<at::Device> device,
                     std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
  return filled_like(self, 1, dtype, layout, device, pin, format);
}

at::Tensor zeros_like(const at::Tensor& self, std::optional<at::ScalarType> dtype,
                      std::optional<at::Layout> layout, std::optional<at::Device> device,
                      std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
  return filled_like(self, 0, dtype, layout, device, pin, format);
}

}  // namespace

bool stays_with_host(const at::Tensor& tensor) {
  if (!places().any_stays || Watch::current() != nullptr) return false;
  const LazyStorage& storage = *LazyStorage::of(tensor);
  return storage.state == LazyStorage::State::kData && storage.data->with_host;
}

void note_lengths_here(c10::ArrayRef<c10::IValue> results, std::string_view operation) {
  const Runtime& rt = runtime();
  if (!rt.options.host_shapes || rt.options.strict || rt.ahead || replicas_in_world() > 1) return;
  const at::Tensor& result = results.front().toTensor();
  if (!on_device(result) || result.dim() == 0 || !is_small(result) || Watch::current() != nullptr) return;
  const Frames frames = frames_here();
  Lengths& lengths = places().lengths[hash_of(frames)];
  if (lengths.seen.size() < kManyLengths) lengths.seen.insert(result.size(0));
  if (lengths.seen.size() < kManyLengths) return;
  lengths.last = result.size(0);
  for (const c10::IValue& each : results) {
    for_each_tensor(each, [](const at::Tensor& tensor) {
      if (on_device(tensor)) keep_with_host(tensor);
    });
  }
  if (std::exchange(lengths.said, true)) return;
  const std::string place = describe_place(frames);
  base::warn(
      written_name(operation), place.empty() ? "" : base::str(" at ", place), " has given results of ",
      kManyLengths,
      " lengths, and each needs programs of its own: from now on what is made of its results runs on the "
      "host where it is small (up to ",
      kSmall, " elements; SLUICE_HOST_SHAPES=0 keeps it on the device)");
}

bool run_with_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (!places().any_stays || Watch::current() != nullptr) return false;
  const c10::FunctionSchema& schema = op.schema();
  const std::vector<c10::IValue> arguments = torch::jit::last(*stack, schema.arguments().size()).vec();
  if (!is_for_host(schema, arguments)) return false;
  // A write into a tensor of the device keeps that tensor's shape, so the result has no new length.
  const at::Tensor target = arguments[0].isTensor() ? arguments[0].toTensor() : at::Tensor();
  const bool stays = !is_among(kPut, schema.name()) || !on_device(target) || stays_with_host(target) ||
                     is_constant_of_varying_length(target);
  HostMemory memory;
  torch::jit::Stack call;
  for (size_t i = 0; i < arguments.size(); ++i) {
    call.push_back(on_other_device(arguments[i], c10::kCPU, [&](const at::Tensor& tensor) {
      return on_device(tensor) ? memory.view(tensor, writes(schema.arguments()[i])) : tensor;
    }));
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &call);
  count_call();

  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!writes(schema.arguments()[i])) continue;
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (on_device(tensor)) memory.store(tensor, stays);
    });
  }
  torch::jit::drop(*stack, arguments.size());
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    const auto* alias = schema.returns()[i].alias_info();
    if (alias != nullptr) {
      const auto written = std::find_if(
          schema.arguments().begin(), schema.arguments().end(), [alias](const c10::Argument& argument) {
            return argument.alias_info() != nullptr && *argument.alias_info() == *alias;
          });
      stack->push_back(arguments.at(static_cast<size_t>(written - schema.arguments().begin())));
    } else if (call[i].isTensor()) {
      stack->push_back(placed(call[i].toTensor(), stays));
    } else if (call[i].isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : call[i].toTensorList()) list.push_back(placed(tensor, stays));
      stack->emplace_back(list);
    } else {
      stack->push_back(call[i]);
    }
  }
  return true;
}

bool copy_with_host(const at::Tensor& to, const at::Tensor& from) {
  if (!on_device(to) || !on_device(from) || (!stays_with_host(to) && !stays_with_host(from))) return false;
  if (!is_small(to) || !is_small(from)) return false;
  if (!is_known(*LazyStorage::of(to)) || !is_known(*LazyStorage::of(from))) return false;
  HostMemory memory;
  const at::Tensor source = memory.view(from, false);
  memory.view(to, true).copy_(source);
  memory.store(to, /*stays=*/false);
  return true;
}

void forget_lengths() { places() = Places(); }

void register_host_shapes() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::XLA, __FILE__, __LINE__);
  library->impl("ones_like", TORCH_FN(ones_like));
  library->impl("zeros_like", TORCH_FN(zeros_like));
  library->impl("full_like", TORCH_FN(filled_like));
}

}  // namespace sluice::device
