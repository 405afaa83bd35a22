// Finding an operator and its other forms in the dispatcher.
#include <map>

#include "tests/conformance/call.h"

namespace sluice::conformance {
namespace {

// The overloads of each base name.
const std::multimap<std::string, c10::OperatorName>& overloads() {
  static const auto all = [] {
    std::multimap<std::string, c10::OperatorName> names;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames())
      names.emplace(name.name, name);
    return names;
  }();
  return all;
}

// True when the arguments that are no outputs are the functional's, in name and type.
bool same_arguments(const c10::FunctionSchema& functional, const c10::FunctionSchema& other) {
  std::vector<const c10::Argument*> inputs;
  for (const c10::Argument& argument : other.arguments()) {
    if (!argument.is_out()) inputs.push_back(&argument);
  }
  if (inputs.size() != functional.arguments().size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const c10::Argument& mine = functional.arguments()[i];
    if (mine.name() != inputs[i]->name() || !(*mine.type() == *inputs[i]->type())) return false;
  }
  return true;
}

template <typename Accept>
std::optional<Op> find_among(const std::string& base, const Accept& accept) {
  auto [first, last] = overloads().equal_range(base);
  for (; first != last; ++first) {
    auto handle = c10::Dispatcher::singleton().findSchema(first->second);
    if (handle && accept(handle->schema())) return handle;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Op> find_op(const std::string& name) {
  size_t dot = name.find('.');
  c10::OperatorName op(name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1));
  return c10::Dispatcher::singleton().findSchema(op);
}

std::optional<Op> find_in_place(const Op& op) {
  const c10::FunctionSchema& functional = op.schema();
  if (functional.is_mutable()) return std::nullopt;
  return find_among(functional.name() + "_", [&](const c10::FunctionSchema& schema) {
    return same_arguments(functional, schema) && !schema.arguments().empty() &&
           schema.arguments()[0].alias_info() != nullptr && schema.arguments()[0].alias_info()->isWrite();
  });
}

std::optional<Op> find_out(const Op& op) {
  const c10::FunctionSchema& functional = op.schema();
  if (functional.is_mutable()) return std::nullopt;
  return find_among(functional.name(), [&](const c10::FunctionSchema& schema) {
    size_t outs = 0;
    for (const c10::Argument& argument : schema.arguments()) outs += argument.is_out();
    bool tensors = true;
    for (const c10::Argument& result : schema.returns()) {
      tensors = tensors && result.type()->kind() == c10::TypeKind::TensorType;
    }
    return outs == functional.returns().size() && outs > 0 && tensors && same_arguments(functional, schema);
  });
}

}  // namespace sluice::conformance
