#include "sluice/device/program/signature.h"

#include <ATen/ops/item.h>

#include <bit>
#include <cmath>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/transfer.h"

namespace sluice::device {
namespace {

ArgumentKind kind_of(const c10::Argument& argument) {
  // The real type distinguishes ScalarType, Layout and similar types from int.
  const std::string type = argument.real_type()->str();
  auto is = [&](std::string_view base) { return type == base || type == std::string(base) + "?"; };
  if (is("Tensor")) return ArgumentKind::kTensor;
  if (is("Tensor[]") || is("Tensor?[]")) return ArgumentKind::kTensors;
  if (is("Scalar") || is("float")) return ArgumentKind::kNumber;
  if (is("int") || is("SymInt")) return ArgumentKind::kInt;
  if (is("bool")) return argument.name() == "pin_memory" ? ArgumentKind::kIgnored : ArgumentKind::kBool;
  if (is("int[]") || is("SymInt[]") || is("bool[]")) return ArgumentKind::kInts;
  if (is("float[]")) return ArgumentKind::kDoubles;
  if (is("str")) return ArgumentKind::kText;
  if (is("ScalarType")) return ArgumentKind::kDType;
  return ArgumentKind::kIgnored;
}

bool lists(std::string_view names, const std::string& name) {
  for (const std::string& listed : base::split(names, ' ')) {
    if (listed == name) return true;
  }
  return false;
}

uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }

// Returns a 0-d host tensor's value.
Number number_of(const at::Tensor& host) {
  const c10::Scalar scalar = host.item();
  if (scalar.isFloatingPoint())
    return {scalar.toDouble(),
            std::isfinite(scalar.toDouble()) ? static_cast<int64_t>(scalar.toDouble()) : 0};
  return {scalar.toDouble(), scalar.toLong()};
}

int64_t saturated(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 9.2e18) return INT64_MAX;
  if (value <= -9.2e18) return INT64_MIN;
  return static_cast<int64_t>(value);
}

struct ScalarArgument {
  ops::Category category = ops::Category::kFloat;
  Number number;
  double imaginary = 0;
};
ScalarArgument scalar_of(const c10::IValue& value) {
  if (value.isDouble()) return {ops::Category::kFloat, {value.toDouble(), saturated(value.toDouble())}};
  if (value.isBool()) return {ops::Category::kBool, {value.toBool() ? 1.0 : 0.0, value.toBool()}};
  if (value.isInt()) return {ops::Category::kInt, {static_cast<double>(value.toInt()), value.toInt()}};
  const c10::Scalar scalar = value.toScalar();
  if (scalar.isComplex()) {
    const auto z = scalar.toComplexDouble();
    return {ops::Category::kComplex, {z.real(), 0}, z.imag()};
  }
  if (scalar.isFloatingPoint())
    return {ops::Category::kFloat, {scalar.toDouble(), saturated(scalar.toDouble())}};
  return {scalar.isBoolean() ? ops::Category::kBool : ops::Category::kInt,
          {scalar.toDouble(), scalar.toLong()}};
}

bool is_constant(const ArgumentRule& rule, const ScalarArgument& scalar) {
  const double number = scalar.number.real;
  return rule.constant || scalar.category == ops::Category::kComplex ||
         (rule.constant_if_zero && number == 0) || (rule.constant_if_one && number == 1);
}

void add_tensor(const Signature& signature, size_t index, const at::Tensor& tensor, bool in_list,
                Call& call) {
  if (!tensor.defined()) {
    call.key.push_back(0);
    return;
  }
  const bool wrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  if (on_device(tensor)) {
    Operand operand = read(tensor);
    call.strided = call.strided || !tensor.is_contiguous();
    call.key.push_back(reinterpret_cast<uintptr_t>(operand.type) | (wrapped ? 1 : 0));
    call.types.push_back(operand.type);
    call.operands.push_back(operand);
    return;
  }
  if (tensor.device().is_cpu() && tensor.dim() == 0 && tensor.is_complex()) {
    // Run-time scalars are real, so a complex number is uploaded.
    Operand operand = Trace::get().leaf(upload_data({tensor.resolve_conj().resolve_neg().clone()}));
    call.key.push_back(reinterpret_cast<uintptr_t>(operand.type) | (wrapped ? 1 : 0));
    call.types.push_back(operand.type);
    call.operands.push_back(operand);
    return;
  }
  if (tensor.device().is_cpu() && tensor.dim() == 0 && !in_list && is_supported(tensor.scalar_type())) {
    call.key.push_back(2 | (wrapped ? 4 : 0) | static_cast<uint64_t>(tensor.scalar_type()) << 8);
    call.numbers[index] = number_of(tensor);
    return;
  }
  if (tensor.device().is_cpu() && in_list &&
      (tensor.dim() == 0 || c10::isIntegralType(tensor.scalar_type(), true))) {
    Operand operand = Trace::get().leaf(upload_data({tensor.clone()}));
    call.key.push_back(reinterpret_cast<uintptr_t>(operand.type));
    call.types.push_back(operand.type);
    call.operands.push_back(operand);
    return;
  }
  throw_error(
      Code::kInvalidArgument,
      base::str(signature.row->name, ": expected every tensor on xla:0, found '", signature.names[index],
                "' ", tensor.sizes(), " on ", tensor.device().str(), "; move it with .to(device)"));
}

void check_numbers(const Signature& signature, c10::ArrayRef<c10::IValue> arguments) {
  const std::string problem = signature.row->numbers([&](std::string_view name) {
    for (size_t i = 0; i < signature.names.size(); ++i)
      if (signature.names[i] == name) return scalar_of(arguments[i]).number.real;
    throw_error(Code::kInternal, base::str(signature.row->name, " has no argument '", name, "'"));
  });
  if (!problem.empty()) throw_error(Code::kInvalidArgument, base::str(signature.row->name, ": ", problem));
}

}  // namespace

Signature make_signature(const ops::Row& row, const c10::FunctionSchema& functional) {
  Signature signature;
  signature.row = &row;
  for (const c10::Argument& argument : functional.arguments()) {
    ArgumentRule rule;
    rule.kind = kind_of(argument);
    rule.constant = lists(row.constants, argument.name());
    rule.constant_if_zero = lists(row.constant_if_zero, argument.name());
    rule.constant_if_one = lists(row.constant_if_one, argument.name());
    if (argument.real_type()->str().rfind("Generator", 0) == 0)
      signature.generator = static_cast<int>(signature.names.size());
    signature.names.push_back(argument.name());
    signature.rules.push_back(rule);
  }
  for (const std::string& name : base::split(row.writes, ' ')) {
    for (size_t i = 0; i < signature.names.size(); ++i) {
      if (signature.names[i] == name) signature.writes.push_back(i);
    }
  }
  return signature;
}

void read_arguments(const Signature& signature, c10::ArrayRef<c10::IValue> arguments, Call& call) {
  if (signature.row->numbers != nullptr) check_numbers(signature, arguments);
  call.key.push_back(reinterpret_cast<uintptr_t>(signature.row));
  call.numbers.resize(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = arguments[i];
    const ArgumentRule& rule = signature.rules[i];
    if (rule.kind == ArgumentKind::kIgnored) continue;
    if (value.isNone()) {
      call.key.push_back(~uint64_t{0});
      continue;
    }
    switch (rule.kind) {
      case ArgumentKind::kTensor:
        add_tensor(signature, i, value.toTensor(), false, call);
        break;
      case ArgumentKind::kTensors: {
        const auto list = value.toListRef();
        call.key.push_back(list.size());
        for (const c10::IValue& item : list) {
          if (item.isNone())
            call.key.push_back(0);
          else
            add_tensor(signature, i, item.toTensor(), true, call);
        }
        break;
      }
      case ArgumentKind::kNumber: {
        const ScalarArgument scalar = scalar_of(value);
        const bool constant = is_constant(rule, scalar);
        call.key.push_back(static_cast<uint64_t>(scalar.category) | (constant ? 0x100 : 0x200));
        if (constant)
          call.key.push_back(scalar.category >= ops::Category::kFloat
                                 ? bits(scalar.number.real)
                                 : static_cast<uint64_t>(scalar.number.integer));
        else
          call.numbers[i] = scalar.number;
        if (scalar.category == ops::Category::kComplex) call.key.push_back(bits(scalar.imaginary));
        break;
      }
      case ArgumentKind::kInt:
        call.key.push_back(static_cast<uint64_t>(value.toInt()));
        break;
      case ArgumentKind::kBool:
        call.key.push_back(value.toBool());
        break;
      case ArgumentKind::kInts: {
        if (value.isBoolList()) {
          const auto list = value.toBoolList();
          call.key.push_back(list.size());
          for (bool item : list) call.key.push_back(item);
        } else {
          const auto list = value.toDimVector();
          call.key.push_back(list.size());
          for (int64_t item : list) call.key.push_back(static_cast<uint64_t>(item));
        }
        break;
      }
      case ArgumentKind::kDoubles: {
        const auto list = value.toDoubleVector();
        call.key.push_back(list.size());
        for (double item : list) call.key.push_back(bits(item));
        break;
      }
      case ArgumentKind::kText: {
        const auto& text = value.toStringRef();
        call.key.push_back(text.size());
        for (char c : text) call.key.push_back(static_cast<uint64_t>(c));
        break;
      }
      case ArgumentKind::kDType:
        call.key.push_back(static_cast<uint64_t>(value.toScalarType()));
        break;
      case ArgumentKind::kIgnored:
        break;
    }
  }
}

void fill_instance(const Signature& signature, c10::ArrayRef<c10::IValue> arguments, Instance& instance) {
  instance.row = signature.row;
  instance.names = &signature.names;
  instance.args.resize(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = arguments[i];
    const ArgumentRule& rule = signature.rules[i];
    ops::Arg& arg = instance.args[i];
    if (rule.kind == ArgumentKind::kIgnored || value.isNone()) continue;
    switch (rule.kind) {
      case ArgumentKind::kTensor: {
        const at::Tensor& tensor = value.toTensor();
        if (!tensor.defined()) break;
        arg.kind = ops::Arg::Kind::kTensor;
        arg.wrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number();
        arg.from_slot = !on_device(tensor) && !tensor.is_complex();
        arg.dtype = to_dtype(tensor.scalar_type());
        break;
      }
      case ArgumentKind::kTensors: {
        arg.kind = ops::Arg::Kind::kTensors;
        for (const c10::IValue& item : value.toListRef()) {
          arg.ints.push_back(!item.isNone() && item.toTensor().defined());
        }
        arg.values.resize(arg.ints.size());
        break;
      }
      case ArgumentKind::kNumber: {
        const ScalarArgument scalar = scalar_of(value);
        arg.kind = ops::Arg::Kind::kScalar;
        arg.category = scalar.category;
        arg.constant = is_constant(rule, scalar);
        if (arg.constant) {
          arg.number = scalar.number.real;
          arg.integer = scalar.number.integer;
          arg.imaginary = scalar.imaginary;
        }
        break;
      }
      case ArgumentKind::kInt:
        arg.kind = ops::Arg::Kind::kInt;
        arg.ints = {value.toInt()};
        break;
      case ArgumentKind::kBool:
        arg.kind = ops::Arg::Kind::kBool;
        arg.ints = {value.toBool()};
        break;
      case ArgumentKind::kInts:
        arg.kind = ops::Arg::Kind::kInts;
        if (value.isBoolList()) {
          for (bool item : value.toBoolList()) arg.ints.push_back(item);
        } else {
          for (int64_t item : value.toDimVector()) arg.ints.push_back(item);
        }
        break;
      case ArgumentKind::kDoubles:
        arg.kind = ops::Arg::Kind::kDoubles;
        arg.doubles = value.toDoubleVector();
        break;
      case ArgumentKind::kText:
        arg.kind = ops::Arg::Kind::kText;
        arg.text = value.toStringRef();
        break;
      case ArgumentKind::kDType:
        arg.kind = ops::Arg::Kind::kDType;
        arg.dtype = to_dtype(value.toScalarType());
        break;
      case ArgumentKind::kIgnored:
        break;
    }
  }
}

}  // namespace sluice::device
