#include "sluice/stablehlo/operation.h"

#include <algorithm>
#include <variant>

#include "sluice/base/check.h"

namespace sluice::stablehlo {
namespace {

const CallAttribute* find(const Operation& op, std::string_view name) {
  const auto found = std::find_if(op.call.begin(), op.call.end(),
                                  [&](const CallAttribute& attribute) { return attribute.name == name; });
  return found == op.call.end() ? nullptr : &*found;
}

template <typename T>
const T& value_of(const Operation& op, std::string_view name) {
  const CallAttribute* const found = find(op, name);
  const T* const value = found == nullptr ? nullptr : std::get_if<T>(&found->value);
  SLUICE_CHECK(value != nullptr, op.target, " has no attribute ", name, " of this type");
  return *value;
}

}  // namespace

Dims Attributes::list(std::string_view name) const {
  const auto found =
      std::find_if(lists_.begin(), lists_.end(), [&](const auto& entry) { return entry.first == name; });
  return found == lists_.end() ? Dims{} : found->second;
}

Attributes& Attributes::note(std::string_view name, const Dims& values) {
  lists_.emplace_back(name, values);
  return *this;
}

void for_operands(const Operation& op, const std::function<void(Value)>& visit) {
  for (Value v : op.operands)
    if (v) visit(v);
  for (const Block& body : op.bodies) {
    for (const auto& inner : body.operations) for_operands(*inner, visit);
    for (Value v : body.results) visit(v);
  }
}

int64_t Operation::number(std::string_view attribute, int64_t otherwise) const {
  return find(*this, attribute) == nullptr ? otherwise : value_of<int64_t>(*this, attribute);
}

double Operation::real(std::string_view attribute) const { return value_of<double>(*this, attribute); }

const Dims& Operation::ints(std::string_view attribute) const {
  return value_of<std::vector<int64_t>>(*this, attribute);
}

bool Operation::is_call(std::string_view wanted) const {
  return name == "stablehlo.custom_call" && target == wanted;
}

}  // namespace sluice::stablehlo
