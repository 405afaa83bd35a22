// A program as C++ for a reader, and the short names of what it does.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tests/fuzz/programs/program.h"

namespace sluice::fuzz {
namespace {

using conformance::Planned;

std::string name_of(const ValueId& id, const Program& program) {
  if (id.step < 0) return std::string(1, static_cast<char>('a' + id.index % 26)) + (id.index < 26 ? "" : "2");
  const auto op = step_op(program.steps[static_cast<size_t>(id.step)]);
  std::string name = "r" + std::to_string(id.step);
  if (op && op->schema().returns().size() > 1)
    return "std::get<" + std::to_string(id.index) + ">(" + name + ")";
  return name + (id.index == 0 ? "" : "[" + std::to_string(id.index) + "]");
}

std::string number(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  std::ostringstream out;
  out.precision(9);
  out << value;
  std::string text = out.str();
  if (std::stod(text) != value) {
    out.str("");
    out.precision(17);
    out << value;
    text = out.str();
  }
  return text.find_first_of(".e") == std::string::npos ? text + "." : text;
}

std::string type_name(at::ScalarType type) { return std::string("torch::k") + c10::toString(type); }

std::string list(at::IntArrayRef sizes) {
  std::string text = "{";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return text + "}";
}

std::string literal(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  const at::Tensor flat = (tensor.is_complex() ? at::view_as_real(tensor) : tensor).reshape({-1});
  const bool fractions = at::isFloatingType(type) || tensor.is_complex();
  const int64_t shown = std::min<int64_t>(flat.numel(), 24);
  std::string values;
  for (int64_t i = 0; i < shown; ++i) {
    if (i > 0) values += ", ";
    values += fractions ? number(flat[i].to(at::kDouble).item<double>())
                        : std::to_string(flat[i].to(at::kLong).item<int64_t>());
  }
  if (shown < flat.numel()) values += ", …";
  std::string text = "torch::tensor({" + values + "}, " +
                     type_name(tensor.is_complex() ? c10::toRealValueType(type) : type) + ")";
  if (tensor.numel() == 0) return "torch::empty(" + list(tensor.sizes()) + ", " + type_name(type) + ")";
  if (tensor.is_complex()) text = "torch::view_as_complex(" + text + ".reshape({-1, 2}))";
  return tensor.dim() == 1 ? text : text + ".reshape(" + list(tensor.sizes()) + ")";
}

std::string argument(const Operand& operand, const Program& program) {
  if (!operand.value) return "{}";
  std::string text = name_of(*operand.value, program);
  if (operand.type) text += ".to(" + type_name(*operand.type) + ")";
  if (operand.shape)
    text += ".flatten().slice(0, 0, " + std::to_string(c10::multiply_integers(*operand.shape)) +
            ").reshape(" + list(*operand.shape) + ")";
  return text;
}

std::string value_text(const c10::IValue& value, bool type) {
  if (value.isNone()) return "{}";
  if (value.isBool()) return value.toBool() ? "true" : "false";
  if (value.isInt())
    return type ? type_name(static_cast<at::ScalarType>(value.toInt())) : std::to_string(value.toInt());
  if (value.isDouble()) return number(value.toDouble());
  if (value.isString()) return "\"" + value.toStringRef() + "\"";
  if (value.isIntList()) return list(value.toIntVector());
  if (value.isTensor()) return "{}";
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string short_name(const std::string& op) {
  std::string name = op.substr(op.find("::") + 2);
  return name.substr(0, name.find('.'));
}

std::string call_text(const Step& step, const Program& program) {
  const auto op = step_op(step);
  std::vector<std::string> arguments;
  size_t needed = 0;
  for (const c10::Argument& wanted : op->schema().arguments()) {
    std::string text = "{}";
    bool is_default = false;
    for (const Planned& planned : step.arguments) {
      if (planned.name != wanted.name()) continue;
      const bool is_type = wanted.real_type()->str() == "ScalarType" || wanted.name() == "dtype";
      if (planned.kind == Planned::Kind::kValue) {
        text = value_text(planned.value, is_type);
        const auto& usual = wanted.default_value();
        is_default =
            usual && (usual->isNone() ? planned.value.isNone() : value_text(*usual, is_type) == text);
      } else if (planned.kind == Planned::Kind::kFloatType) {
        text = type_name(conformance::scalar_type(step.floating));
      } else if (planned.kind == Planned::Kind::kTensor) {
        text = planned.tensors[0] < 0
                   ? "{}"
                   : argument(step.operands[static_cast<size_t>(planned.tensors[0])], program);
      } else {
        text = "{";
        for (size_t i = 0; i < planned.tensors.size(); ++i) {
          text += i > 0 ? ", " : "";
          text += planned.tensors[i] < 0
                      ? "{}"
                      : argument(step.operands[static_cast<size_t>(planned.tensors[i])], program);
        }
        text += "}";
      }
    }
    arguments.push_back(text);
    if (!is_default) needed = arguments.size();
  }
  arguments.resize(needed);
  std::string text;
  size_t first = 0;
  if (step.in_place || step.op == "aten::to.dtype" || step.op == "aten::expand") {
    text = arguments[0] + "." + short_name(step.op) + (step.in_place ? "_" : "") + "(";
    first = 1;
  } else {
    text = "at::" + short_name(step.op) + "(";
  }
  for (size_t i = first; i < arguments.size(); ++i) text += (i > first ? ", " : "") + arguments[i];
  return text + ")";
}

std::string chain_of(const Program& program, const ValueId& id, int depth) {
  if (id.step < 0) return c10::toString(program.leaves[static_cast<size_t>(id.index)].value.scalar_type());
  const Step& step = program.steps[static_cast<size_t>(id.step)];
  std::string text = short_name(step.op) + (step.in_place ? "_" : "");
  if (step.op == "aten::to.dtype")
    text +=
        std::string("<") + c10::toString(static_cast<at::ScalarType>(step.arguments[1].value.toInt())) + ">";
  if (depth == 0) return text;
  text += "(";
  for (size_t i = 0; i < step.operands.size(); ++i) {
    if (i > 0) text += ", ";
    const Operand& operand = step.operands[i];
    text += operand.value ? chain_of(program, *operand.value, depth - 1) : "none";
    if (operand.type) text += std::string(" as ") + c10::toString(*operand.type);
  }
  return text + ")";
}

}  // namespace

std::string as_code(const Program& program, const Outcome&) {
  std::string text;
  for (size_t i = 0; i < program.leaves.size(); ++i) {
    const Leaf& leaf = program.leaves[i];
    text += "  auto " + name_of({-1, static_cast<int>(i)}, program) + " = " + literal(leaf.value) +
            (leaf.gradient && program.gradients ? ".requires_grad_()" : "") + ";\n";
  }
  for (size_t i = 0; i < program.steps.size(); ++i)
    text += "  auto r" + std::to_string(i) + " = " + call_text(program.steps[i], program) + ";\n";
  if (program.gradients) text += "  // and the gradient of a weighted sum of the results\n";
  if (!program.keep_all) text += "  // the last result alone is kept\n";
  return text;
}

std::string chain(const Program& program, const Difference& difference) {
  if (program.steps.empty()) return "nothing";
  const int last = static_cast<int>(program.steps.size()) - 1;
  const bool own = difference.step >= 0 && difference.step <= last;
  return (difference.step > last ? "gradient of " : "") +
         chain_of(program, {own ? difference.step : last, 0}, 3);
}

}  // namespace sluice::fuzz
