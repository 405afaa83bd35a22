// From a sample's text to LibTorch values.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <functional>

#include "tests/conformance/call.h"

namespace sluice::conformance {
namespace {

[[noreturn]] void refuse(const Sample& sample, const std::string& message) {
  throw SampleError(sample.where() + ": " + message);
}

at::Tensor explicit_values(const TensorSpec& spec, int64_t count) {
  std::vector<double> values(static_cast<size_t>(spec.kind == 'c' ? 2 * count : count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = spec.values[i % spec.values.size()];
  if (spec.kind != 'c') return at::tensor(values, at::kDouble);
  // Pairs: real and imaginary part.
  return at::view_as_complex(at::tensor(values, at::kDouble).reshape({-1, 2}));
}

// The logical values, in the wanted element type.
at::Tensor random_values(const TensorSpec& spec, at::ScalarType type, const at::Generator& generator) {
  int64_t count = 1;
  for (int64_t dim : spec.dims) count *= dim;
  auto uniform = [&](double low, double high) {
    return at::rand({count}, generator, at::kDouble) * (high - low) + low;
  };
  at::Tensor values;
  if (!spec.values.empty()) {
    values = explicit_values(spec, count);
  } else if (spec.kind == 'c') {
    values = at::randn({count}, generator, at::kComplexDouble);
  } else if (spec.kind == 'f') {
    values = at::randn({count}, generator, at::kDouble);
  } else if (spec.kind == 'i') {
    values = at::randint(spec.low, spec.high + 1, {count}, generator, at::kLong);
  } else if (spec.kind == 'd') {
    values = (at::randperm(count, generator, at::kDouble) - static_cast<double>(count / 2)) * 0.25;
  } else if (spec.kind == 'b') {
    values = uniform(0, 1).gt(0.5);
  } else {
    values = spec.kind == 'p'   ? uniform(0.1, 2.1)
             : spec.kind == 'u' ? uniform(-0.9, 0.9)
                                : uniform(0.05, 0.95);
  }
  return values.to(type).reshape(spec.dims);
}

bool floating_kind(char kind) { return kind != 'i' && kind != 'b'; }

// Memory that looks like `values` through the view.
TensorInput lay_out(const at::Tensor& values, View view, char kind, const at::Generator& generator) {
  TensorInput input{values, view, values.sizes().vec()};
  if (view == View::kExpanded && (values.dim() == 0 || values.size(0) < 2 || kind == 'd'))
    input.view = View::kPlain;
  if (view == View::kTransposed && values.dim() < 2) input.view = View::kSliced;
  if (view == View::kPlain || values.numel() == 0) {
    input.view = View::kPlain;
  } else if (input.view == View::kExpanded) {
    input.base = values.narrow(0, 0, 1).contiguous();
  } else if (input.view == View::kTransposed) {
    input.base = values.transpose(-1, -2).contiguous();
  } else if (input.view == View::kSliced) {
    std::vector<int64_t> sizes = values.sizes().vec();
    for (int64_t& size : sizes) ++size;
    if (sizes.empty()) sizes.push_back(3);
    // The rest of the memory holds values of the same kind, so that reading it by mistake shows.
    at::Tensor rest = at::randint(0, values.numel(), sizes, generator, at::kLong);
    input.base = values.reshape({-1}).index_select(0, rest.reshape({-1})).reshape(sizes).contiguous();
    at::Tensor inside = input.base;
    if (values.dim() == 0) inside = inside.select(0, 1);
    for (int64_t d = 0; d < values.dim(); ++d) inside = inside.narrow(d, 1, values.size(d));
    inside.copy_(values);
  }
  return input;
}

class Maker {
 public:
  Maker(const Sample& sample, Inputs& inputs, View view)
      : sample_(sample),
        inputs_(inputs),
        view_(view),
        generator_(at::detail::createCPUGenerator(inputs.seed)) {}

  Planned plan(const c10::Argument& argument, const Value& value) {
    Planned planned;
    planned.name = argument.name();
    c10::TypePtr type = argument.real_type();
    if (auto optional = type->cast<c10::OptionalType>()) {
      if (value.kind == Value::Kind::kNone) return planned;
      type = optional->getElementType();
    }
    if (value.kind == Value::Kind::kNone) {
      if (type->kind() == c10::TypeKind::TensorType) planned.value = at::Tensor();
      return planned;
    }
    if (value.kind == Value::Kind::kTensor) {
      if (type->kind() != c10::TypeKind::TensorType) refuse(sample_, argument.name() + " is not a tensor");
      planned.kind = Planned::Kind::kTensor;
      planned.tensors = {make(value.tensor)};
    } else if (value.kind == Value::Kind::kSame) {
      if (value.integer < 0 || value.integer >= static_cast<int64_t>(inputs_.arguments.size())) {
        refuse(sample_, "@" + std::to_string(value.integer) + " names no earlier argument");
      }
      planned = inputs_.arguments[static_cast<size_t>(value.integer)];
      planned.name = argument.name();
    } else if (value.kind == Value::Kind::kTensors) {
      plan_tensors(planned, type, value);
    } else if (value.kind == Value::Kind::kDType && value.text == "float") {
      planned.kind = Planned::Kind::kFloatType;
    } else {
      planned.value = plain(argument, type, value);
    }
    return planned;
  }

 private:
  int make(const TensorSpec& spec) {
    const std::string& fallback = floating_kind(spec.kind) ? inputs_.types.floating : inputs_.types.integer;
    at::ScalarType type = spec.kind == 'b' && spec.dtype.empty()
                              ? at::kBool
                              : scalar_type(spec.dtype.empty() ? fallback : spec.dtype);
    if (spec.kind == 'c') type = c10::toComplexType(type);
    inputs_.tensors.push_back(lay_out(random_values(spec, type, generator_), view_, spec.kind, generator_));
    return static_cast<int>(inputs_.tensors.size()) - 1;
  }

  void plan_tensors(Planned& planned, const c10::TypePtr& type, const Value& value) {
    auto list = type->cast<c10::ListType>();
    if (!list) refuse(sample_, planned.name + " is not a list of tensors");
    bool optional = list->getElementType()->kind() == c10::TypeKind::OptionalType;
    planned.kind = optional ? Planned::Kind::kOptionalTensors : Planned::Kind::kTensors;
    for (const Value& item : value.items) {
      planned.tensors.push_back(item.kind == Value::Kind::kNone ? -1 : make(item.tensor));
    }
  }

  c10::IValue number(const c10::TypePtr& type, const Value& value) {
    switch (type->kind()) {
      case c10::TypeKind::NumberType:
        if (value.kind == Value::Kind::kBool) return c10::IValue(at::Scalar(value.integer != 0));
        return value.whole ? c10::IValue(at::Scalar(value.integer)) : c10::IValue(at::Scalar(value.number));
      case c10::TypeKind::FloatType:
        return c10::IValue(value.number);
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType:
        if (!value.whole) refuse(sample_, "an argument of type int needs an integer");
        return c10::IValue(value.integer);
      case c10::TypeKind::BoolType:
        return c10::IValue(value.integer != 0);
      default:
        refuse(sample_, "a number does not fit an argument of type " + type->str());
    }
  }

  c10::IValue list(const c10::TypePtr& element, const std::vector<double>& values) {
    switch (element->kind()) {
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType:
        return c10::IValue(std::vector<int64_t>(values.begin(), values.end()));
      case c10::TypeKind::FloatType:
        return c10::IValue(values);
      case c10::TypeKind::BoolType: {
        c10::List<bool> bools;
        for (double value : values) bools.push_back(value != 0);
        return c10::IValue(bools);
      }
      case c10::TypeKind::NumberType: {
        c10::impl::GenericList numbers(c10::NumberType::get());
        for (double value : values) numbers.push_back(c10::IValue(at::Scalar(value)));
        return c10::IValue(numbers);
      }
      default:
        refuse(sample_, "a list does not fit elements of type " + element->str());
    }
  }

  c10::IValue plain(const c10::Argument& argument, const c10::TypePtr& type, const Value& value) {
    switch (value.kind) {
      case Value::Kind::kText:
        return c10::IValue(value.text);
      case Value::Kind::kDType:
        return c10::IValue(static_cast<int64_t>(scalar_type(value.text)));
      case Value::Kind::kList:
      case Value::Kind::kNumber:
      case Value::Kind::kBool:
        break;
      default:
        refuse(sample_, "this value does not fit argument " + argument.name());
    }
    auto list_type = type->cast<c10::ListType>();
    if (value.kind == Value::Kind::kList) {
      if (!list_type) refuse(sample_, argument.name() + " is not a list");
      return list(list_type->getElementType(), value.list);
    }
    if (!list_type) return number(type, value);
    size_t count = static_cast<size_t>(argument.N().value_or(1));  // int[2] takes one number for both
    double one = value.kind == Value::Kind::kBool ? static_cast<double>(value.integer) : value.number;
    return list(list_type->getElementType(), std::vector<double>(count, one));
  }

  const Sample& sample_;
  Inputs& inputs_;
  View view_;
  at::Generator generator_;
};

// Which value each argument of the schema has; null for its default.
std::vector<const Value*> assign(const Sample& sample, const c10::FunctionSchema& schema) {
  std::vector<const Value*> values(schema.arguments().size(), nullptr);
  for (size_t i = 0; i < sample.arguments.size(); ++i) {
    const Argument& given = sample.arguments[i];
    size_t index = i;
    if (!given.name.empty()) {
      auto found = schema.argumentIndexWithName(given.name);
      if (!found) refuse(sample, "the op has no argument '" + given.name + "': " + c10::toString(schema));
      index = static_cast<size_t>(*found);
    }
    if (index >= values.size()) refuse(sample, "too many arguments for " + c10::toString(schema));
    values[index] = &given.value;
  }
  return values;
}

}  // namespace

const char* view_name(View view) {
  const char* names[] = {"plain", "transposed", "sliced", "expanded"};
  return names[static_cast<int>(view)];
}

at::ScalarType scalar_type(const std::string& name) {
  static const std::map<std::string, at::ScalarType> types = {{"f32", at::kFloat},
                                                              {"f64", at::kDouble},
                                                              {"f16", at::kHalf},
                                                              {"bf16", at::kBFloat16},
                                                              {"i64", at::kLong},
                                                              {"i32", at::kInt},
                                                              {"i16", at::kShort},
                                                              {"i8", at::kChar},
                                                              {"u8", at::kByte},
                                                              {"bool", at::kBool},
                                                              {"c64", at::kComplexFloat},
                                                              {"c128", at::kComplexDouble},
                                                              {"f8e4m3fn", at::kFloat8_e4m3fn},
                                                              {"f8e5m2", at::kFloat8_e5m2}};
  return types.at(name);
}

Inputs make_inputs(const Sample& sample, const c10::FunctionSchema& schema, const RunTypes& types,
                   View view) {
  Inputs inputs;
  inputs.types = types;
  inputs.seed = std::hash<std::string>()(sample.text) % 1'000'003;
  Maker maker(sample, inputs, view);
  auto values = assign(sample, schema);
  for (size_t i = 0; i < values.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    Planned planned;
    if (values[i] != nullptr) {
      planned = maker.plan(argument, *values[i]);
    } else {
      planned.name = argument.name();
      if (argument.default_value()) planned.value = *argument.default_value();
    }
    inputs.arguments.push_back(std::move(planned));
  }
  for (const Argument& extra : sample.reference_arguments) {
    if (schema.argumentIndexWithName(extra.name))
      refuse(sample, "cpu." + extra.name + " is an argument of the op");
    c10::Argument argument(extra.name, extra.value.kind == Value::Kind::kList
                                           ? c10::TypePtr(c10::ListType::ofInts())
                                           : c10::TypePtr(c10::NumberType::get()));
    inputs.arguments.push_back(maker.plan(argument, extra.value));
  }
  return inputs;
}

}  // namespace sluice::conformance
