#include "sluice/device/recompute.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>

#include "sluice/base/error.h"
#include "sluice/device/capture/capture.h"
#include "sluice/device/device.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/device/storage.h"

namespace sluice {
namespace recompute_detail {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Function = std::function<variable_list(const variable_list&)>;

at::Tensor random_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state);
}

// The state of autocast, for the device and the CPU.
class AutocastState {
 public:
  AutocastState() {
    for (size_t i = 0; i < kTypes.size(); ++i)
      states_[i] = {at::autocast::is_autocast_enabled(kTypes[i]),
                    at::autocast::get_autocast_dtype(kTypes[i])};
  }
  void set() const {
    for (size_t i = 0; i < kTypes.size(); ++i) {
      at::autocast::set_autocast_enabled(kTypes[i], states_[i].enabled);
      at::autocast::set_autocast_dtype(kTypes[i], states_[i].dtype);
    }
  }

 private:
  static constexpr std::array kTypes = {c10::kXLA, c10::kCPU};
  struct State {
    bool enabled = false;
    at::ScalarType dtype = at::kFloat;
  };
  std::array<State, kTypes.size()> states_;
};

// A scope for the second call: restores the state of the first call, and at its end the present state.
class AsBefore {
 public:
  AsBefore(const at::Tensor& random, const AutocastState& autocast) : random_(random_state()) {
    at::autocast::increment_nesting();
    set_random_state(random);
    autocast.set();
  }
  ~AsBefore() {
    autocast_.set();
    set_random_state(random_);
    // The weights that were cast here belong to the backward pass.
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  }
  AsBefore(const AsBefore&) = delete;
  AsBefore& operator=(const AsBefore&) = delete;

 private:
  at::Tensor random_;
  AutocastState autocast_;
};

struct Call : torch::CustomClassHolder {
  explicit Call(Function given) : function(std::move(given)) {}
  Function function;
  at::Tensor random = random_state();
  AutocastState autocast;
};

// Puts the tensors of the device behind one barrier: nothing that uses one is computed before all exist, nor
// merged with an equal computation without the barrier.
void hold(variable_list& tensors) {
  std::vector<at::Tensor*> own;
  for (at::Tensor& tensor : tensors)
    if (tensor.defined() && device::on_device(tensor)) own.push_back(&tensor);
  if (own.empty()) return;
  device::TraceLock lock = device::lock_trace();
  std::vector<device::Operand> values;
  device::Sameness sameness = device::Sameness::kGlobal;
  for (const at::Tensor* tensor : own) {
    values.push_back(device::read(*tensor));
    sameness = device::weakest(sameness, values.back().sameness);
  }
  const auto held = device::record_list("sluice::hold", values, {}, sameness);
  for (size_t i = 0; i < own.size(); ++i) {
    const bool dense = own[i]->is_non_overlapping_and_dense();
    *own[i] = device::make_tensor(held[i], dense ? own[i]->strides().vec() : std::vector<int64_t>());
  }
  if (device::runtime_options().eager) device::cut("sluice::checkpoint");
}

class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  // `root` requires gradients, so that the outputs do even if no input does.
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<Call>& call,
                               const at::Tensor& /*root*/, at::TensorList inputs) {
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    context->set_materialize_grads(false);
    context->save_for_backward(inputs.vec());
    variable_list outputs = call->function(inputs.vec());
    if (device::captured_call_is_recorded() && !at::equal(call->random, random_state()))
      device::refuse_replay(
          "sluice::checkpoint has random numbers in it: a replay would draw others for its second call");
    return outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    if (at::GradMode::is_enabled())
      throw_error(Code::kUnimplemented,
                  "sluice::checkpoint has no gradients of gradients: leave out create_graph");
    const auto capsule = context->saved_data["call"].toCapsule();
    const auto& call = static_cast<const Call&>(*capsule);
    const variable_list saved = context->get_saved_variables();
    variable_list all = saved;
    all.insert(all.end(), gradients.begin(), gradients.end());
    hold(all);
    variable_list inputs(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(saved.size()));
    gradients.assign(all.begin() + static_cast<std::ptrdiff_t>(saved.size()), all.end());
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].defined()) inputs[i] = inputs[i].detach().requires_grad_(saved[i].requires_grad());
    run_backward(call, inputs, gradients);
    variable_list result(2);
    for (const at::Tensor& input : inputs)
      result.push_back(input.defined() && input.requires_grad() ? input.grad() : at::Tensor());
    return result;
  }

 private:
  static void run_backward(const Call& call, const variable_list& inputs, const variable_list& gradients) {
    variable_list outputs, known, of_known;
    {
      const at::AutoGradMode with_gradients(true);
      const AsBefore as_before(call.random, call.autocast);
      outputs = call.function(inputs);
    }
    for (size_t i = 0; i < outputs.size() && i < gradients.size(); ++i) {
      if (!gradients[i].defined() || !outputs[i].requires_grad()) continue;
      known.push_back(outputs[i]);
      of_known.push_back(gradients[i]);
    }
    if (!known.empty()) torch::autograd::backward(known, of_known);
  }
};

}  // namespace recompute_detail

std::vector<at::Tensor> checkpoint(
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> function,
    const std::vector<at::Tensor>& inputs) {
  if (!at::GradMode::is_enabled()) return function(inputs);
  const at::Tensor root = at::empty({0}).requires_grad_(true);
  return recompute_detail::Recomputed::apply(c10::make_intrusive<recompute_detail::Call>(std::move(function)),
                                             root, at::TensorList(inputs));
}

at::Tensor checkpoint(std::function<at::Tensor(const at::Tensor&)> function, const at::Tensor& input) {
  const auto of_list = [function = std::move(function)](const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{function(inputs.front())};
  };
  return checkpoint(of_list, std::vector<at::Tensor>{input}).front();
}

}  // namespace sluice
