// Running a program on a device, step by step.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>

#include "tests/fuzz/programs/program.h"

namespace sluice::fuzz {
namespace {

using conformance::Planned;

uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

bool fractions(at::ScalarType type) { return at::isFloatingType(type) || at::isComplexType(type); }

// Numbers around 0, uniform in (-1, 1), the same for the same seed.
at::Tensor noise_like(const at::Tensor& value, uint64_t seed) {
  at::Tensor noise = at::empty(value.sizes(), at::kDouble);
  double* data = noise.data_ptr<double>();
  for (int64_t i = 0; i < noise.numel(); ++i) {
    seed = mixed(seed);
    // Mostly the ends: what is asked is how far a result can go.
    data[i] = (seed & 1) != 0 ? 1 : -1;
    if ((seed & 6) == 0) data[i] *= static_cast<double>(seed >> 11) * 0x1p-53;
  }
  return noise;
}

double type_tolerance(at::ScalarType type, double in_f32) {
  switch (c10::toRealValueType(type)) {
    case at::kDouble:
      return in_f32 * 1e-4;
    case at::kHalf:
      return in_f32 * 5e2;
    case at::kBFloat16:
      return in_f32 * 4e3;
    case at::kFloat:
      return in_f32;
    default:
      return in_f32 * 2e4;  // float8
  }
}

at::Tensor flushed(const at::Tensor& value) {
  const at::ScalarType type = value.scalar_type();
  if (type != at::kFloat && type != at::kDouble && type != at::kBFloat16) return value;
  const double smallest = type == at::kDouble ? 0x1p-1022 : 0x1p-126;
  return at::where(value.abs().lt(smallest), value * 0, value);
}

// In the memory of `value`, behind autograd's back.
void overwrite(const at::Tensor& value, const at::Tensor& with) {
  at::NoGradGuard no_grad;
  const at::Tensor memory = value.detach();
  if (memory.is_non_overlapping_and_dense())
    memory.copy_(with);  // of what is expanded the origin was changed
}

at::Tensor saturated(const at::Tensor& value, at::ScalarType type) {
  double low = -0x1p63, high = 0x1p63 - 1024;
  if (type == at::kInt) low = -0x1p31, high = 0x1p31 - 1;
  if (type == at::kShort) low = -0x1p15, high = 0x1p15 - 1;
  if (type == at::kChar) low = -128, high = 127;
  if (type == at::kByte) low = 0, high = 255;
  at::Tensor whole = value.to(at::kDouble).nan_to_num(0, high, low).clamp(low, high);
  return whole.to(at::kLong).to(type);
}

bool is_view(const at::Tensor& tensor) {
  return !tensor.is_contiguous() || tensor.storage_offset() != 0 ||
         tensor.storage().nbytes() != static_cast<size_t>(tensor.numel()) * tensor.element_size();
}

std::vector<at::Tensor> tensors_of(const torch::jit::Stack& stack) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : stack) {
    if (value.isTensor()) tensors.push_back(value.toTensor());
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
    }
  }
  return tensors;
}

bool conversion(const Step& step) {
  return step.op == "aten::to.dtype" || step.op == "aten::_to_copy" || step.op == "aten::copy_";
}

}  // namespace

std::optional<Op> step_op(const Step& step) {
  static std::map<std::string, std::optional<Op>> functional, in_place;
  auto& known = step.in_place ? in_place : functional;
  auto found = known.find(step.op);
  if (found != known.end()) return found->second;
  std::optional<Op> op = conformance::find_op(step.op);
  if (op && step.in_place) op = conformance::find_in_place(*op);
  return known[step.op] = op;
}

Execution::Execution(const Program& program, at::Device device, const Variation& variation,
                     const Rounded* rounded)
    : program_(program), device_(device), variation_(variation), rounded_(rounded) {
  for (const Leaf& leaf : program.leaves) {
    at::Tensor value = leaf.value.clone();
    if (variation.flush) value = flushed(value);
    value = value.to(device);
    if (leaf.gradient && program.gradients) value.requires_grad_();
    outcome_.leaves.push_back(value);
  }
}

const at::Tensor& Execution::value(const ValueId& id) const {
  if (id.step < 0) return outcome_.leaves.at(static_cast<size_t>(id.index));
  return outcome_.results.at(static_cast<size_t>(id.step)).at(static_cast<size_t>(id.index));
}

at::Tensor Execution::operand(const Step& step, const Operand& operand, bool widen, uint64_t noise) const {
  if (!operand.value) return at::Tensor();
  at::Tensor value = this->value(*operand.value);
  if (!value.defined()) return value;
  if (operand.type && value.scalar_type() != *operand.type) {
    value = variation_.saturate && !fractions(*operand.type) && *operand.type != at::kBool &&
                    fractions(value.scalar_type()) && !value.is_complex()
                ? saturated(value, *operand.type)
                : value.to(*operand.type);
  }
  if (operand.shape && value.sizes() != at::IntArrayRef(*operand.shape)) {
    int64_t count = 1;
    for (int64_t dim : *operand.shape) count *= dim;
    at::Tensor flat = value.reshape({-1});
    if (flat.numel() == 0) {
      flat = at::zeros({count}, flat.options());
    } else if (flat.numel() < count) {
      flat = flat.repeat({(count + flat.numel() - 1) / flat.numel()});
    }
    value = flat.narrow(0, 0, count).reshape(*operand.shape);
  }
  if (noise != 0 && fractions(value.scalar_type())) {
    const double size = variation_.noise_scale * type_tolerance(value.scalar_type(), step.tolerance);
    value = value * (noise_like(value, noise) * size + 1).to(value.scalar_type());
  }
  if (widen && at::isFloatingType(value.scalar_type())) value = value.to(at::kDouble);
  if (widen && value.is_complex()) value = value.to(at::kComplexDouble);
  return value;
}

torch::jit::Stack Execution::bind(const Step& step, const Op& op, bool widen, uint64_t noise) const {
  std::vector<at::Tensor> tensors;
  for (const Operand& one : step.operands) {
    if (noise != 0) noise = mixed(noise);
    tensors.push_back(operand(step, one, widen, noise));
  }
  // The very same tensor stays that.
  for (size_t i = 1; i < tensors.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (step.operands[i].value == step.operands[k].value &&
          step.operands[i].type == step.operands[k].type && step.operands[i].shape == step.operands[k].shape)
        tensors[i] = tensors[k];
    }
  }
  const auto tensor = [&](int index) {
    return index < 0 ? at::Tensor() : tensors[static_cast<size_t>(index)];
  };
  torch::jit::Stack stack;
  for (const c10::Argument& argument : op.schema().arguments()) {
    c10::IValue value;
    if (argument.default_value()) value = *argument.default_value();
    for (const Planned& planned : step.arguments) {
      if (planned.name != argument.name()) continue;
      switch (planned.kind) {
        case Planned::Kind::kValue:
          value = planned.value;
          break;
        case Planned::Kind::kFloatType:
          value = static_cast<int64_t>(widen ? at::kDouble : conformance::scalar_type(step.floating));
          break;
        case Planned::Kind::kTensor:
          value = tensor(planned.tensors[0]);
          break;
        case Planned::Kind::kTensors: {
          c10::List<at::Tensor> list;
          for (int index : planned.tensors) list.push_back(tensor(index));
          value = list;
          break;
        }
        case Planned::Kind::kOptionalTensors: {
          c10::List<std::optional<at::Tensor>> list;
          for (int index : planned.tensors)
            list.push_back(index < 0 ? std::nullopt : std::optional(tensor(index)));
          value = list;
          break;
        }
      }
    }
    if (argument.name() == "device" && value.isNone() && step.operands.empty()) value = device_;
    stack.push_back(std::move(value));
  }
  return stack;
}

bool Execution::step(size_t index) {
  const Step& step = program_.steps[index];
  if (failed()) return false;
  at::AutoGradMode mode(program_.gradients);
  const std::optional<Op> op = step_op(step);
  const bool rounds = rounded_ != nullptr && !rounded_->masks.at(index).empty();
  const bool sums = step.family != "pointwise" && step.family != "activation" && rounds && !step.in_place;
  try {
    if (!op) throw std::runtime_error("there is no operation " + step.op);
    const bool widen = variation_.wide && rounds && !step.in_place;
    const bool nudged =
        variation_.nudge && rounded_ != nullptr && rounded_->transcendental.at(index) && !step.in_place;
    const uint64_t noise = nudged                          ? 7 + index
                           : variation_.noise != 0 && sums ? mixed(variation_.noise + 977 * index)
                                                           : 0;
    torch::jit::Stack stack = bind(step, *op, widen, noise);
    op->callBoxed(&stack);
    std::vector<at::Tensor> results = tensors_of(stack);
    if (widen) {
      for (size_t i = 0; i < results.size(); ++i) {
        const at::ScalarType type = rounded_->types.at(index)[i];
        if (results[i].defined() && results[i].scalar_type() != type) results[i] = results[i].to(type);
      }
    }
    outcome_.results.push_back(results);
  } catch (const std::exception& error) {
    outcome_.error = error.what();
    outcome_.error_step = static_cast<int>(index);
    return false;
  }
  vary(index);
  return true;
}

// Changes what the step gave, within what its rounding may change.
void Execution::vary(size_t index) {
  const Step& step = program_.steps[index];
  std::vector<at::Tensor>& results = outcome_.results[index];
  for (size_t i = 0; i < results.size(); ++i) {
    at::Tensor& result = results[i];
    if (!result.defined() || result.numel() == 0) continue;
    if (variation_.saturate && conversion(step) && at::isIntegralType(result.scalar_type(), false)) {
      const at::Tensor from = operand(step, step.operands.back(), false, 0);
      if (at::isFloatingType(from.scalar_type()))
        overwrite(result, saturated(from, result.scalar_type()).expand(result.sizes()));
    }
    if (!fractions(result.scalar_type()) || step.exact_layout) continue;
    if (variation_.zero_sign != 0 && step.either_zero && !result.is_complex() &&
        !c10::isFloat8Type(result.scalar_type())) {
      const at::Tensor zero = at::zeros({}, result.options());
      overwrite(result,
                at::where(result.detach().eq(0), variation_.zero_sign > 0 ? zero : -zero, result.detach()));
    }
    if (variation_.flush && !result.is_complex()) overwrite(result, flushed(result.detach()));
    if (variation_.noise == 0 || rounded_ == nullptr || rounded_->masks.at(index).size() <= i) continue;
    const double size = variation_.noise_scale * type_tolerance(result.scalar_type(), step.tolerance);
    const at::Tensor factors = noise_like(result, mixed(variation_.noise + 31 * index + i)) * size;
    const at::Tensor& mask = rounded_->masks.at(index)[i];
    if (mask.defined()) {
      const at::Tensor wide = result.detach().to(result.is_complex() ? at::kComplexDouble : at::kDouble);
      const at::Tensor moved = (wide * (factors + 1)).to(result.scalar_type());
      overwrite(result, at::where(mask.logical_and(wide.isfinite()), moved, result.detach()));
    }
    if (result.requires_grad() && !step.in_place) {
      const at::Tensor scale = (factors + 1).to(c10::toRealValueType(result.scalar_type()));
      result.register_hook([scale](const at::Tensor& gradient) { return gradient * scale; });
    }
  }
}

std::vector<at::Tensor> Execution::rounded_of(size_t index) const {
  const Step& step = program_.steps[index];
  const std::vector<at::Tensor>& results = outcome_.results[index];
  std::vector<at::Tensor> wide;
  if (!step.in_place && !step.exact_layout) {
    try {
      at::NoGradGuard no_grad;
      const std::optional<Op> op = step_op(step);
      torch::jit::Stack stack = bind(step, *op, true, 0);
      op->callBoxed(&stack);
      wide = tensors_of(stack);
    } catch (const std::exception&) {
      wide.clear();
    }
  }
  std::vector<at::Tensor> masks;
  bool any = false;
  for (size_t i = 0; i < results.size(); ++i) {
    at::Tensor mask;
    const at::Tensor& result = results[i];
    if (result.defined() && fractions(result.scalar_type()) && !step.exact_layout) {
      const at::ScalarType type = result.is_complex() ? at::kComplexDouble : at::kDouble;
      const at::Tensor mine = result.detach().to(type);
      if (result.scalar_type() == type || i >= wide.size() || !wide[i].defined() ||
          wide[i].sizes() != result.sizes()) {
        // Nothing wider to compare with: a number of few bits counts as exact.
        const at::ScalarType narrow = result.is_complex() ? at::kComplexFloat : at::kFloat;
        mask = mine.ne(mine.to(narrow).to(type));
        if (result.scalar_type() != type) mask = at::ones_like(mask);
      } else {
        mask = mine.ne(wide[i].to(type));
      }
      any = any || (mask.numel() > 0 && mask.any().item<bool>());
    }
    masks.push_back(mask);
  }
  if (!any) masks.clear();
  return masks;
}

bool Execution::is_transcendental(size_t index) const {
  const Step& step = program_.steps[index];
  if (step.family != "pointwise" || step.operands.size() != 1 || step.in_place) return false;
  try {
    at::NoGradGuard no_grad;
    const std::optional<Op> op = step_op(step);
    const at::Tensor tries = at::tensor({0.3, 0.7, 1.3, 2.9}, at::kFloat);
    std::vector<at::Tensor> results;
    for (at::ScalarType type : {at::kFloat, at::kDouble}) {
      torch::jit::Stack stack = bind(step, *op, false, 0);
      for (c10::IValue& value : stack) {
        if (value.isTensor() && value.toTensor().defined()) value = tries.to(type);
      }
      op->callBoxed(&stack);
      results.push_back(tensors_of(stack).at(0).to(at::kDouble));
    }
    return !at::equal(results[0], results[1]);
  } catch (const std::exception&) {
    return false;
  }
}

void Execution::gradients() {
  if (failed() || !program_.gradients) return;
  std::vector<at::Tensor> outputs, weights, leaves;
  uint64_t seed = mixed(program_.seed * 1000003 + static_cast<uint64_t>(program_.number));
  for (const auto& results : outcome_.results) {
    for (const at::Tensor& result : results) {
      seed = mixed(seed);
      if (!result.defined() || !result.requires_grad() || !fractions(result.scalar_type())) continue;
      // Quarters between -2 and 2, so that the functional is exact in every type.
      at::Tensor weight = at::empty(result.sizes(), at::kDouble);
      uint64_t state = seed;
      for (int64_t i = 0; i < weight.numel(); ++i) {
        state = mixed(state);
        weight.data_ptr<double>()[i] = (static_cast<double>(state % 17) - 8) / 4;
      }
      outputs.push_back(result);
      weights.push_back(weight.to(result.scalar_type()).to(device_));
    }
  }
  for (const at::Tensor& leaf : outcome_.leaves) {
    if (leaf.requires_grad()) leaves.push_back(leaf);
  }
  if (outputs.empty() || leaves.empty()) return;
  try {
    outcome_.gradients = torch::autograd::grad(outputs, leaves, weights, false, false, true);
  } catch (const std::exception& error) {
    outcome_.gradient_error = error.what();
  }
}

void Execution::finish() {
  at::NoGradGuard no_grad;
  const auto dense = [](at::Tensor& tensor) {
    if (!tensor.defined()) return;
    if (tensor._is_zerotensor()) tensor = at::zeros(tensor.sizes(), tensor.options());
    tensor = tensor.detach();
    if (is_view(tensor)) tensor = tensor.clone(at::MemoryFormat::Contiguous);
  };
  for (at::Tensor& leaf : outcome_.leaves) dense(leaf);
  for (size_t i = 0; i < outcome_.results.size(); ++i) {
    const bool kept = program_.keep_all || i + 1 == outcome_.results.size();
    for (at::Tensor& result : outcome_.results[i]) {
      if (kept) {
        dense(result);
      } else {
        result = at::Tensor();
      }
    }
  }
  for (at::Tensor& gradient : outcome_.gradients) dense(gradient);
}

Outcome& Execution::bring() {
  at::NoGradGuard no_grad;
  const auto home = [](at::Tensor& tensor) {
    if (tensor.defined()) tensor = tensor.cpu();
  };
  for (at::Tensor& leaf : outcome_.leaves) home(leaf);
  for (auto& results : outcome_.results) {
    for (at::Tensor& result : results) home(result);
  }
  for (at::Tensor& gradient : outcome_.gradients) home(gradient);
  return outcome_;
}

Outcome run_on_cpu(const Program& program, const Variation& variation, const Rounded* rounded) {
  if (variation.flush) at::globalContext().setFlushDenormal(true);
  Execution execution(program, at::kCPU, variation, rounded);
  for (size_t i = 0; i < program.steps.size() && execution.step(i); ++i) {
  }
  execution.gradients();
  execution.finish();
  if (variation.flush) at::globalContext().setFlushDenormal(false);
  return execution.outcome();
}

Rounded find_rounded(const Program& program) {
  Rounded rounded;
  Execution execution(program, at::kCPU);
  for (size_t i = 0; i < program.steps.size() && execution.step(i); ++i) {
    rounded.masks.push_back(execution.rounded_of(i));
    rounded.transcendental.push_back(execution.is_transcendental(i));
    rounded.types.emplace_back();
    for (const at::Tensor& result : execution.outcome().results[i])
      rounded.types.back().push_back(result.defined() ? result.scalar_type() : at::kDouble);
  }
  rounded.masks.resize(program.steps.size());
  rounded.transcendental.resize(program.steps.size());
  rounded.types.resize(program.steps.size());
  return rounded;
}

}  // namespace sluice::fuzz
