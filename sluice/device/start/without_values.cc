#include "sluice/device/start/without_values.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/device/device.h"
#include "sluice/device/runtime.h"
#include "sluice/device/sharding/processes.h"
#include "sluice/device/start/start_tape.h"

namespace sluice {
namespace device {
namespace {

// LibTorch has this key for such scopes and gives it no functions of its own.
constexpr c10::DispatchKey kKey = c10::DispatchKey::DeferredInit;

thread_local StartTape* recording = nullptr;

std::mutex tapes_mutex;
// The tapes whose tensors may still need values.
std::vector<std::shared_ptr<StartTape>>& tapes() {
  static auto& all = *new std::vector<std::shared_ptr<StartTape>>();
  return all;
}

void drop_unneeded_tapes() {
  const std::scoped_lock lock(tapes_mutex);
  auto& all = tapes();
  all.erase(std::remove_if(all.begin(), all.end(), [](const auto& tape) { return !tape->is_needed(); }),
            all.end());
}

bool has_tensor(c10::ArrayRef<c10::IValue> values) {
  return std::any_of(values.begin(), values.end(),
                     [](const c10::IValue& value) { return value.isTensor() || value.isTensorList(); });
}

bool is_without_value(const c10::IValue& value) {
  if (value.isTensor()) return lacks_value(value.toTensor());
  if (!value.isTensorList()) return false;
  const auto list = value.toTensorVector();
  return std::any_of(list.begin(), list.end(), [](const at::Tensor& one) { return lacks_value(one); });
}

bool any_without_value(c10::ArrayRef<c10::IValue> values) {
  return std::any_of(values.begin(), values.end(), is_without_value);
}

// Sends a call that makes a tensor of nothing, without naming a device, to the "meta" device.
void choose_device(const c10::FunctionSchema& schema, torch::jit::Stack& stack) {
  const size_t count = schema.arguments().size();
  const c10::ArrayRef<c10::IValue> arguments(stack.data() + stack.size() - count, count);
  if (has_tensor(arguments)) return;
  for (size_t i = 0; i < count; ++i)
    if (schema.arguments()[i].name() == "device" && arguments[i].isNone())
      stack[stack.size() - count + i] = c10::IValue(at::Device(at::kMeta));
}

// The kernel of every operation in a scope.
void record_call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard below(kKey);
  choose_device(op.schema(), *stack);
  const size_t count = op.schema().arguments().size();
  std::vector<c10::IValue> arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  op.callBoxed(stack);
  const size_t results = op.schema().returns().size();
  const c10::ArrayRef<c10::IValue> made(stack->data() + stack->size() - results, results);
  if (recording != nullptr && (any_without_value(arguments) || any_without_value(made)))
    recording->record(op, std::move(arguments), made);
}

void register_once() {
  static auto* library = [] {
    auto* all = new torch::Library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
    all->fallback(torch::CppFunction::makeFromBoxedFunction<&record_call>());
    return all;
  }();
  (void)library;
}

[[noreturn]] void refuse(const std::string& name) {
  throw_error(Code::kFailedPrecondition,
              base::str("the tensor ", name,
                        " has no value (it is on LibTorch's meta device), and nothing says how it begins: "
                        "make the model in a scope of sluice::WithoutValues, or load its weights first"));
}

[[noreturn]] void refuse_write(const std::string& name) {
  throw_error(Code::kFailedPrecondition,
              base::str("the tensor ", name,
                        " was written to before it had a value, after the scope of sluice::WithoutValues in "
                        "which it was made: do that within the scope, or after sluice::shard"));
}

// Compares the seeds of several processes, which draw the same numbers.
void check_seeds(const StartTape& tape) {
  if (!runtime().world.mesh_spans_processes()) return;
  check_equal_in_processes("sluice::shard", {{"the state of the CPU generator", tape.random_state()}});
}

}  // namespace

void draw_start(const std::vector<std::pair<std::string, at::Tensor>>& wanted, at::Device device,
                const std::function<void(const at::Tensor&, const at::Tensor&)>& take) {
  std::vector<std::shared_ptr<StartTape>> all;
  {
    const std::scoped_lock lock(tapes_mutex);
    all = tapes();
  }
  std::vector<bool> known(wanted.size(), false);
  for (const auto& tape : all) {
    std::vector<at::Tensor> own;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (known[i] || !tape->knows(wanted[i].second)) continue;
      known[i] = true;
      if (tape->was_written(wanted[i].second)) refuse_write(wanted[i].first);
      own.push_back(wanted[i].second);
    }
    if (own.empty()) continue;
    check_seeds(*tape);
    const SharedRandom shared;
    tape->run(own, tape->numbers() == StartNumbers::kHost ? at::Device(at::kCPU) : device, take);
  }
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!known[i]) refuse(wanted[i].first);
  drop_unneeded_tapes();
}

}  // namespace device

struct WithoutValues::Scope {
  explicit Scope(StartNumbers numbers)
      : tape(std::make_shared<device::StartTape>(numbers)), included(device::kKey) {
    device::recording = tape.get();
  }
  ~Scope() { device::recording = nullptr; }
  std::shared_ptr<device::StartTape> tape;
  c10::impl::IncludeDispatchKeyGuard included;
};

WithoutValues::WithoutValues(StartNumbers numbers) {
  if (device::recording != nullptr) return;  // part of the outer scope
  device::register_once();
  device::drop_unneeded_tapes();
  scope_ = std::make_unique<Scope>(numbers);
}

WithoutValues::~WithoutValues() {
  if (scope_ == nullptr) return;
  const std::shared_ptr<device::StartTape> tape = scope_->tape;
  scope_.reset();
  tape->close();
  const std::scoped_lock lock(device::tapes_mutex);
  device::tapes().push_back(tape);
}

bool starts_without_values() {
  return is_initialized() && (device::runtime().ahead || device::runtime().world.mesh != nullptr);
}

void give_value(const at::Tensor& tensor, const at::Tensor& value) {
  if (tensor.sizes() != value.sizes() || tensor.scalar_type() != value.scalar_type())
    throw_error(Code::kInvalidArgument,
                base::str("expected a value of ", tensor.scalar_type(), ' ', tensor.sizes(), ", found ",
                          value.scalar_type(), ' ', value.sizes()));
  // set_data() refuses the "meta" device.
  if (lacks_value(tensor))
    tensor.unsafeGetTensorImpl()->shallow_copy_from(value.detach().getIntrusivePtr());
  else
    tensor.set_data(value);
}

}  // namespace sluice
