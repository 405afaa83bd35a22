#include "sluice/device/start/start_tape.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::device {
namespace {

bool is_recorded(const c10::IValue& value) { return value.isTensor() && lacks_value(value.toTensor()); }

// Puts the device in the place of the "meta" device of an argument.
c10::IValue on_device_of(const c10::IValue& value, at::Device device) {
  return value.isDevice() && value.toDevice().is_meta() ? c10::IValue(device) : value;
}

at::Tensor random_state_now() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state);
}

// The element type of a tensor that is made depends on LibTorch's default type at that time.
void fix_type(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> results,
              std::vector<c10::IValue>& arguments) {
  if (results.size() != 1 || !is_recorded(results[0])) return;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (schema.arguments()[i].name() == "dtype" && arguments[i].isNone())
      arguments[i] = c10::IValue(static_cast<int64_t>(results[0].toTensor().scalar_type()));
}

}  // namespace

StartTape::StartTape(StartNumbers numbers) : numbers_(numbers), before_(random_state_now()) {}

void StartTape::close() {
  after_ = random_state_now();
  for (size_t i = 0; i < known_.size(); ++i)
    if (const at::Tensor tensor(known_[i].tensor.lock()); tensor.defined()) follow_set_data(tensor);
  for (Known& known : known_)
    if (const at::Tensor tensor(known.tensor.lock()); tensor.defined())
      known.version = static_cast<uint32_t>(tensor._version());
}

bool StartTape::was_written(const at::Tensor& tensor) const {
  const Known& known = known_[numbers_of_.at(tensor.unsafeGetTensorImpl())];
  return known.version != static_cast<uint32_t>(tensor._version());
}

void StartTape::follow_set_data(const at::Tensor& tensor) {
  const auto found = numbers_of_.find(tensor.unsafeGetTensorImpl());
  const auto* const storage = tensor.storage().unsafeGetStorageImpl();
  const auto is_same = [&](const Known& known) { return known.storage.unsafeGetStorageImpl() == storage; };
  if (found == numbers_of_.end() || is_same(known_[found->second])) return;
  const auto given = std::find_if(known_.begin(), known_.end(), is_same);
  if (given == known_.end()) return;
  if (!at::Tensor(given->tensor.lock()).defined())
    given->tensor = decltype(Known::tensor)(tensor.getIntrusivePtr());
  found->second = static_cast<uint32_t>(given - known_.begin());
}

uint32_t StartTape::number_of(const at::Tensor& tensor) {
  follow_set_data(tensor);
  const auto next = static_cast<uint32_t>(known_.size());
  const auto [found, fresh] = numbers_of_.try_emplace(tensor.unsafeGetTensorImpl(), next);
  if (fresh) known_.push_back({decltype(Known::tensor)(tensor.getIntrusivePtr()), tensor.storage()});
  return found->second;
}

StartTape::Slot StartTape::slot_of(const c10::IValue& value) {
  if (is_recorded(value)) return {{}, {number_of(value.toTensor())}};
  if (!value.isTensorList()) {
    // A later write to a tensor with a value must not change what was recorded.
    if (value.isTensor() && value.toTensor().defined()) return {value.toTensor().detach().clone()};
    return {value};
  }
  Slot slot{{}, {}, true};
  for (const at::Tensor& tensor : value.toTensorVector()) {
    if (!lacks_value(tensor))
      throw_error(Code::kUnimplemented,
                  "sluice::WithoutValues: a list of tensors of which some have values and some have none");
    slot.tensors.push_back(number_of(tensor));
  }
  return slot;
}

void StartTape::record(const c10::OperatorHandle& op, std::vector<c10::IValue> arguments,
                       c10::ArrayRef<c10::IValue> results) {
  fix_type(op.schema(), results, arguments);
  Step step{op, {}, {}};
  const size_t known = known_.size();
  for (const c10::IValue& argument : arguments) step.arguments.push_back(slot_of(argument));
  if (known_.size() > known)
    throw_error(Code::kFailedPrecondition,
                base::str("sluice::WithoutValues: ", op.schema().name(),
                          " uses a tensor without a value that was not made in this scope"));
  for (const c10::IValue& result : results)
    step.results.push_back(is_recorded(result) || result.isTensorList() ? slot_of(result) : Slot{});
  steps_.push_back(std::move(step));
}

bool StartTape::is_needed() const {
  return std::any_of(known_.begin(), known_.end(), [](const Known& known) {
    const at::Tensor tensor(known.tensor.lock());
    return tensor.defined() && lacks_value(tensor);
  });
}

std::vector<size_t> StartTape::last_uses() const {
  std::unordered_map<const c10::StorageImpl*, size_t> of_storage;
  for (size_t i = 0; i < steps_.size(); ++i)
    for (const auto* slots : {&steps_[i].arguments, &steps_[i].results})
      for (const Slot& slot : *slots)
        for (const uint32_t tensor : slot.tensors)
          of_storage[known_[tensor].storage.unsafeGetStorageImpl()] = i;
  std::vector<size_t> last;
  for (const Known& known : known_) last.push_back(of_storage[known.storage.unsafeGetStorageImpl()]);
  return last;
}

void StartTape::run(const std::vector<at::Tensor>& wanted, at::Device device,
                    const std::function<void(const at::Tensor&, const at::Tensor&)>& take) const {
  const at::NoGradGuard no_grad;
  const at::Tensor now = random_state_now();
  const bool continues = !after_.defined() || at::equal(now, after_);
  set_random_state(before_);
  const std::vector<size_t> last = last_uses();
  std::unordered_map<uint32_t, std::vector<at::Tensor>> takers;
  for (const at::Tensor& tensor : wanted)
    takers[numbers_of_.at(tensor.unsafeGetTensorImpl())].push_back(tensor);
  std::vector<std::vector<uint32_t>> finished(steps_.size());
  for (uint32_t i = 0; i < known_.size(); ++i) finished[last[i]].push_back(i);
  std::vector<at::Tensor> values(known_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    torch::jit::Stack stack;
    for (const Slot& slot : step.arguments) {
      if (slot.is_list) {
        std::vector<at::Tensor> list;
        for (const uint32_t tensor : slot.tensors) list.push_back(values[tensor]);
        stack.emplace_back(std::move(list));
      } else if (!slot.tensors.empty()) {
        stack.emplace_back(values[slot.tensors.front()]);
      } else {
        stack.push_back(on_device_of(slot.value, device));
      }
    }
    step.op.callBoxed(&stack);
    for (size_t r = 0; r < step.results.size(); ++r) {
      const Slot& slot = step.results[r];
      if (slot.tensors.empty()) continue;
      const std::vector<at::Tensor> made =
          slot.is_list ? stack[r].toTensorVector() : std::vector<at::Tensor>{stack[r].toTensor()};
      for (size_t k = 0; k < made.size(); ++k) values[slot.tensors[k]] = made[k];
    }
    stack.clear();
    for (const uint32_t tensor : finished[i]) {
      if (const auto found = takers.find(tensor); found != takers.end())
        for (const at::Tensor& taker : found->second) take(taker, values[tensor]);
      values[tensor].reset();
    }
  }
  if (!continues) set_random_state(now);
}

}  // namespace sluice::device
