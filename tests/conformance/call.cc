#include "tests/conformance/call.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <map>

namespace sluice::conformance {
namespace {

// The tensors of a call on its device.
struct Placed {
  std::vector<at::Tensor> bases;
  std::vector<at::Tensor> arguments;
};

at::Tensor look(const at::Tensor& base, const TensorInput& input) {
  switch (input.view) {
    case View::kPlain:
      return base;
    case View::kTransposed:
      return base.transpose(-1, -2);
    case View::kExpanded:
      return base.expand(input.sizes);
    case View::kSliced:
      break;
  }
  at::Tensor inside = base;
  if (input.sizes.empty()) return inside.select(0, 1);
  for (size_t d = 0; d < input.sizes.size(); ++d) {
    inside = inside.narrow(static_cast<int64_t>(d), 1, input.sizes[d]);
  }
  return inside;
}

bool low_precision(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

Placed place_on(const Inputs& inputs, const CallOptions& options) {
  Placed placed;
  for (size_t i = 0; i < inputs.tensors.size(); ++i) {
    const TensorInput& input = inputs.tensors[i];
    bool widen = options.wide && low_precision(input.base.scalar_type());
    at::Tensor host = widen ? input.base.to(at::kDouble) : input.base.clone();
    at::Tensor base = options.place ? options.place(i, host) : host.to(options.device);
    const bool fractions = at::isFloatingType(base.scalar_type()) || base.is_complex();
    if (options.gradients && input.differentiable && fractions) base.requires_grad_();
    placed.bases.push_back(base);
    placed.arguments.push_back(look(base, input));
  }
  return placed;
}

at::ScalarType float_type(const Inputs& inputs, bool wide) {
  at::ScalarType type = scalar_type(inputs.types.floating);
  return wide && low_precision(type) ? at::kDouble : type;
}

c10::IValue bind_one(const Planned& planned, const Inputs& inputs, const Placed& placed, bool wide) {
  auto tensor = [&](int index) {
    return index < 0 ? at::Tensor() : placed.arguments[static_cast<size_t>(index)];
  };
  switch (planned.kind) {
    case Planned::Kind::kValue:
      return planned.value;
    case Planned::Kind::kFloatType:
      return c10::IValue(static_cast<int64_t>(float_type(inputs, wide)));
    case Planned::Kind::kTensor:
      return c10::IValue(tensor(planned.tensors[0]));
    case Planned::Kind::kTensors: {
      c10::List<at::Tensor> list;
      for (int index : planned.tensors) list.push_back(tensor(index));
      return c10::IValue(list);
    }
    case Planned::Kind::kOptionalTensors:
      break;
  }
  c10::List<std::optional<at::Tensor>> list;
  for (int index : planned.tensors) list.push_back(index < 0 ? std::nullopt : std::optional(tensor(index)));
  return c10::IValue(list);
}

// The stack for a schema, by the arguments' names.
torch::jit::Stack bind(const c10::FunctionSchema& schema, const Inputs& inputs, const Placed& placed,
                       const CallOptions& options) {
  torch::jit::Stack stack;
  for (const c10::Argument& argument : schema.arguments()) {
    c10::IValue value;
    if (argument.default_value()) value = *argument.default_value();
    for (const Planned& planned : inputs.arguments) {
      if (planned.name == argument.name()) value = bind_one(planned, inputs, placed, options.wide);
    }
    if (argument.name() == "device" && value.isNone() && inputs.tensors.empty()) value = options.device;
    stack.push_back(std::move(value));
  }
  return stack;
}

std::vector<at::Tensor> tensors_of(const torch::jit::Stack& stack) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : stack) {
    if (value.isTensor()) {
      tensors.push_back(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
    } else if (value.isScalar()) {
      tensors.push_back(at::scalar_tensor(value.toScalar()));
    }
  }
  return tensors;
}

// Gradients of all floating arguments for random gradients of the results.
void differentiate(const Inputs& inputs, const CallOptions& options, const Placed& placed, Outcome& outcome) {
  std::vector<at::Tensor> outputs, gradients, leaves;
  at::Generator generator = at::detail::createCPUGenerator(inputs.seed + 1);
  for (const at::Tensor& result : outcome.results) {
    if (!result.defined() || !result.requires_grad()) continue;
    const bool complex = result.is_complex();
    at::Tensor gradient = at::randn(result.sizes(), generator, complex ? at::kComplexDouble : at::kDouble);
    const at::ScalarType type = scalar_type(inputs.types.floating);
    gradient = gradient.to(complex ? c10::toComplexType(type) : type);
    outputs.push_back(result);
    gradients.push_back(gradient.to(result.scalar_type()).to(options.device));
  }
  for (const at::Tensor& base : placed.bases) {
    if (base.requires_grad()) leaves.push_back(base);
  }
  if (outputs.empty() || leaves.empty()) return;
  try {
    outcome.gradients = torch::autograd::grad(outputs, leaves, gradients, false, false, true);
  } catch (const std::exception& error) {
    outcome.gradient_error = error.what();
  }
}

// What the call left: results and memory, detached.
void keep(Outcome& outcome, const Placed& placed) {
  at::NoGradGuard no_grad;
  for (at::Tensor& result : outcome.results) {
    if (result.defined()) result = result.detach();
  }
  for (const at::Tensor& base : placed.bases) outcome.bases.push_back(base.detach());
}

bool call_boxed(const Op& op, torch::jit::Stack& stack, Outcome& outcome) {
  try {
    op.callBoxed(&stack);
    outcome.results = tensors_of(stack);
    return true;
  } catch (const std::exception& error) {
    outcome.error = error.what();
    return false;
  }
}

}  // namespace

Outcome call(const Op& op, const Inputs& inputs, const CallOptions& options) {
  Outcome outcome;
  at::AutoGradMode mode(options.gradients);
  CallOptions real = options;
  if (op.schema().is_mutable()) real.gradients = false;
  Placed placed = place_on(inputs, real);
  torch::jit::Stack stack = bind(op.schema(), inputs, placed, real);
  if (!call_boxed(op, stack, outcome)) return outcome;
  if (real.gradients) differentiate(inputs, real, placed, outcome);
  keep(outcome, placed);
  return outcome;
}

void probe_gradients(const Op& op, Inputs& inputs) {
  const std::string before = "not differentiable with respect to argument '";
  for (size_t tries = 0; tries <= inputs.arguments.size(); ++tries) {
    std::string error = call(op, inputs, {at::kCPU, false, true}).error;
    size_t start = error.find(before);
    if (start == std::string::npos) return;
    start += before.size();
    std::string name = error.substr(start, error.find('\'', start) - start);
    for (const Planned& planned : inputs.arguments) {
      if (planned.name != name) continue;
      for (int index : planned.tensors) {
        if (index >= 0) inputs.tensors[static_cast<size_t>(index)].differentiable = false;
      }
    }
  }
}

Outcome call_in_place(const Op& op, const Inputs& inputs, const CallOptions& options) {
  Outcome outcome;
  at::NoGradGuard no_grad;
  Placed placed = place_on(inputs, options);
  torch::jit::Stack stack = bind(op.schema(), inputs, placed, options);
  at::Tensor self = stack[0].isTensor() ? stack[0].toTensor() : at::Tensor();
  if (!call_boxed(op, stack, outcome)) return outcome;
  outcome.same_tensor = outcome.results.size() == 1 && outcome.results[0].is_same(self);
  keep(outcome, placed);
  return outcome;
}

Outcome call_out(const Op& op, const Inputs& inputs, const CallOptions& options,
                 const std::vector<at::Tensor>& like, bool shaped) {
  Outcome outcome;
  at::NoGradGuard no_grad;
  Placed placed = place_on(inputs, options);
  torch::jit::Stack stack = bind(op.schema(), inputs, placed, options);
  std::vector<at::Tensor> outs;
  for (size_t i = 0; i < stack.size(); ++i) {
    if (!op.schema().arguments()[i].is_out()) continue;
    at::Tensor model = like.at(outs.size());
    at::ScalarType type =
        options.wide && low_precision(model.scalar_type()) ? at::kDouble : model.scalar_type();
    auto choice = at::TensorOptions().dtype(type).device(options.device);
    outs.push_back(shaped ? at::ones(model.sizes(), choice) : at::empty({0}, choice));
    stack[i] = outs.back();
  }
  if (!call_boxed(op, stack, outcome)) return outcome;
  outcome.same_tensor = outcome.results.size() == outs.size();
  for (size_t i = 0; i < outs.size() && outcome.same_tensor; ++i) {
    outcome.same_tensor = outcome.results[i].is_same(outs[i]);
  }
  outcome.results = outs;
  keep(outcome, placed);
  return outcome;
}

}  // namespace sluice::conformance
