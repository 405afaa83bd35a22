#include "sluice/device/libtorch/fallback.h"

#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <algorithm>
#include <unordered_map>

#include "sluice/base/error.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/device/operators/host_shapes.h"
#include "sluice/device/operators/value_shapes.h"
#include "sluice/device/program/call_arguments.h"
#include "sluice/device/program/record.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/report/recompiles.h"
#include "sluice/device/runtime.h"
#include "sluice/device/storage.h"
#include "sluice/device/transfer.h"

namespace sluice::device {
namespace {

// Calls `visit` with each tensor of an argument that is on the device.
template <typename Visit>
void for_each_on_device(const c10::IValue& argument, const Visit& visit) {
  for_each_tensor(argument, [&](const at::Tensor& tensor) {
    if (on_device(tensor)) visit(tensor);
  });
}

bool any_differs(c10::ArrayRef<c10::IValue> arguments) {
  TraceLock lock = lock_trace();
  bool differs = false;
  for (const c10::IValue& argument : arguments)
    for_each_on_device(argument, [&](const at::Tensor& tensor) {
      differs = differs || read(tensor).sameness == Sameness::kDifferent;
    });
  return differs;
}

using Hosts = std::unordered_map<const c10::TensorImpl*, std::vector<at::Tensor>>;  // [replica]

// Returns the argument as one replica sees it, on the CPU.
c10::IValue on_host(const c10::IValue& value, const Hosts& hosts, size_t replica) {
  return on_other_device(value, c10::kCPU, [&](const at::Tensor& tensor) {
    return on_device(tensor) ? hosts.at(tensor.unsafeGetTensorImpl())[replica] : tensor;
  });
}

// Returns the replicas' results as one value on the device.
at::Tensor joined(const std::string& name, const std::vector<at::Tensor>& parts) {
  for (const at::Tensor& part : parts) {
    if (part.sizes() == parts[0].sizes() && part.scalar_type() == parts[0].scalar_type()) continue;
    throw_error(
        Code::kInvalidArgument,
        base::str(name, ": the results have different shapes on the replicas (", parts[0].sizes(), " and ",
                  part.sizes(), "), and a program has one shape for all. Use a mask: ",
                  "torch::where(condition, value, 0) and sums instead of boolean indexing or nonzero"));
  }
  if (!parts[0].defined()) return {};
  return make_tensor(upload_data(parts));
}

c10::IValue joined_result(const std::string& name, const std::vector<torch::jit::Stack>& stacks,
                          size_t index) {
  const c10::IValue& first = stacks[0][index];
  if (first.isTensor()) {
    std::vector<at::Tensor> parts;
    for (const auto& stack : stacks) parts.push_back(stack[index].toTensor());
    return joined(name, parts);
  }
  if (first.isTensorList()) {
    c10::List<at::Tensor> list;
    for (size_t i = 0; i < first.toTensorList().size(); ++i) {
      std::vector<at::Tensor> parts;
      for (const auto& stack : stacks) parts.push_back(stack[index].toTensorList().get(i));
      list.push_back(joined(name, parts));
    }
    return list;
  }
  for (const auto& stack : stacks) {
    if (stack[index] == first) continue;
    throw_error(Code::kFailedPrecondition,
                base::str(name, ": the result is a value of the host, and the replicas have different ones; ",
                          "sluice::on_replica(tensor, 0) reads one replica's tensor"));
  }
  return first;
}

// Calls the operation on the CPU once for each local replica.
void fall_back_by_replica(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const std::string name = toString(schema.operator_name());
  const std::vector<c10::IValue> arguments = torch::jit::last(*stack, schema.arguments().size()).vec();
  Hosts hosts;
  for (const c10::IValue& argument : arguments)
    for_each_on_device(argument, [&](const at::Tensor& tensor) {
      if (!hosts.contains(tensor.unsafeGetTensorImpl()))
        hosts[tensor.unsafeGetTensorImpl()] = download_all(tensor);
    });
  std::vector<torch::jit::Stack> stacks(static_cast<size_t>(runtime().world.local_replicas));
  for (size_t r = 0; r < stacks.size(); ++r) {
    for (const c10::IValue& argument : arguments) stacks[r].push_back(on_host(argument, hosts, r));
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stacks[r]);
  }
  TraceLock lock = lock_trace();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) continue;
    for_each_on_device(arguments[i], [&](const at::Tensor& tensor) {
      const at::Tensor result = joined(name, hosts.at(tensor.unsafeGetTensorImpl()));
      if (result.sizes() != tensor.sizes()) tensor.resize_(result.sizes());
      write(tensor, read(result));
    });
  }
  torch::jit::drop(*stack, arguments.size());
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    const auto* alias = schema.returns()[i].alias_info();
    size_t written = arguments.size();
    for (size_t k = 0; alias != nullptr && alias->isWrite() && k < arguments.size(); ++k) {
      const auto* other = schema.arguments()[k].alias_info();
      if (other != nullptr && *other == *alias) written = k;
    }
    stack->push_back(written < arguments.size() ? arguments[written] : joined_result(name, stacks, i));
  }
}

// Operations whose results have shapes that depend on all their values. They can only run on the host, and
// count as reads of values, not as fallbacks.
constexpr std::string_view kReadValues[] = {"aten::nonzero",
                                            "aten::nonzero.out",
                                            "aten::_unique",
                                            "aten::_unique2",
                                            "aten::unique_consecutive",
                                            "aten::unique_dim",
                                            "aten::unique_dim_consecutive"};

// Counts a fallback; warns once for each name.
void count_and_warn(const std::string& name, const std::string& why) {
  Metrics& metrics = Metrics::get();
  int64_t count = 0;
  {
    std::scoped_lock lock(metrics.mutex);
    ++metrics.counters.fallbacks;
    count = ++metrics.fallbacks[name];
  }
  if (count == 1)
    base::warn(name, " runs on the CPU (", why,
               "): its operands are copied to the host each time; this is said once");
}

[[noreturn]] void refuse(const c10::OperatorHandle& op, const char* what) {
  throw_error(Code::kUnimplemented, base::str(toString(op.schema().operator_name()), ": ", what));
}
void refuse_sparse(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  refuse(op,
         "sparse tensors cannot be on xla:0, only dense ones; a sparse matrix times x is "
         "torch::zeros(...).index_add(0, rows, values.unsqueeze(1) * x.index_select(0, columns)), the "
         "gradient of an embedding is dense with sparse(false), and a sparse copy on the host is "
         ".cpu().to_sparse()");
}
void refuse_quantized(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  refuse(
      op,
      "quantized tensors cannot be on xla:0; fake_quantize_per_tensor_affine and its like train there, and "
      ".cpu() before quantizing gives LibTorch's own");
}

void boxed_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  if (op.schema().name().starts_with("aten::quantize_per_")) refuse_quantized(op, {}, stack);
  fall_back(op, stack, "no row");
}

}  // namespace

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& why) {
  const std::string name = toString(op.schema().operator_name());
  {
    const TraceLock lock = lock_trace();
    if (run_with_host(op, stack)) return;
  }
  if (index_by_positions(op, stack)) return;
  const bool reads = std::find(std::begin(kReadValues), std::end(kReadValues), name) != std::end(kReadValues);
  if (!reads) {
    if (runtime_options().strict)
      throw_error(Code::kUnimplemented,
                  base::str("--strict: ", name, " has no program on xla (", why,
                            ") and would run on the CPU; replace it, or run without --strict"));
    count_and_warn(name, why);
  }
  if (any_differs(torch::jit::last(*stack, op.schema().arguments().size())))
    fall_back_by_replica(op, stack);
  else
    at::native::cpu_fallback(op, stack, /*error_on_views=*/false);
  const size_t results = op.schema().returns().size();
  if (!reads || !torch::jit::peek(*stack, 0, results).isTensor()) return;
  const at::Tensor first = torch::jit::peek(*stack, 0, results).toTensor();
  if (first.dim() == 0) return;
  const TraceLock lock = lock_trace();
  note_value_shape(name, first.size(0));
  note_lengths_here(torch::jit::last(*stack, results), name);
}

void register_fallback() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::XLA, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_fallback>());
  const auto of = [](c10::DispatchKey key) {
    return new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  };
  static auto *sparse = of(c10::DispatchKey::SparseXLA), *quantized = of(c10::DispatchKey::QuantizedXLA);
  sparse->fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>());
  quantized->fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_quantized>());
  // A sparse compressed tensor is made without an operation of this key, so its constructor is refused.
  static auto* compressed =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::SparseCsrXLA, __FILE__, __LINE__);
  compressed->impl("_sparse_compressed_tensor_unsafe",
                   torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>());
}

}  // namespace sluice::device
