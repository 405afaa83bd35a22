// The core of the builder: types, values, blocks, and how an operation is written.
#include "sluice/stablehlo/builder.h"

#include <charconv>
#include <functional>

#include "sluice/base/check.h"
#include "sluice/stablehlo/builder_impl.h"

namespace sluice::stablehlo {
namespace {

void append_number(std::string& text, int64_t value) {
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

unsigned kind_of(DType dtype) {
  if (is_float(dtype)) return kFloats;
  if (dtype == DType::kPred) return kPredicates;
  return is_unsigned(dtype) ? kUnsigned : kSigned;
}

std::string kinds_text(unsigned kinds) {
  std::vector<std::string> names;
  if ((kinds & kPredicates) != 0) names.emplace_back("predicates");
  if ((kinds & kIntegers) == kIntegers) {
    names.emplace_back("integers");
  } else {
    if ((kinds & kSigned) != 0) names.emplace_back("signed integers");
    if ((kinds & kUnsigned) != 0) names.emplace_back("unsigned integers");
  }
  if ((kinds & kFloats) != 0) names.emplace_back("floats");
  return base::join(names, " or ");
}

}  // namespace

size_t TypeHash::operator()(const Type& type) const noexcept {
  size_t hash = static_cast<size_t>(type.dtype) + 1;
  for (int64_t dim : type.dims) hash = (hash ^ static_cast<size_t>(dim)) * 0x9E3779B97F4A7C15u + (hash >> 29);
  return hash;
}

Builder::Builder() : impl_(std::make_unique<Impl>(this)) {}
Builder::~Builder() = default;

const Type& Builder::type_of(int32_t id) const {
  SLUICE_CHECK(id >= 0 && static_cast<size_t>(id) < impl_->values.size(), "no value of number ", id);
  return impl_->values[static_cast<size_t>(id)].type->type;
}

size_t Builder::operations() const { return impl_->operations; }

void Builder::set_location(std::string_view name) {
  impl_->location = name.empty() ? std::string() : " loc(" + quoted(name) + ")";
}

void Builder::set_precision(Precision precision) { impl_->precision = precision; }

void Builder::set_explicit_nan(bool on) { impl_->explicit_nan = on; }

Value Builder::parameter(const Type& type) {
  if (impl_->scopes.size() != 1 || impl_->finished) {
    throw Error(Code::kFailedPrecondition,
                "a parameter belongs to main: it cannot be added inside a region's body "
                "or to a finished program");
  }
  const auto number = static_cast<int32_t>(impl_->parameters.size());
  const Value v = impl_->new_value(impl_->intern_checked("parameter", type), 'p', number);
  impl_->parameters.push_back(v);
  return v;
}

Builder::Impl::Impl(Builder* builder) : owner(builder) {
  scopes.push_back({next_scope++, true, "main", {}, {}});
}

const TypeEntry* Builder::Impl::intern(const Type& type) {
  const auto [it, added] = types.try_emplace(type);
  if (added) it->second = {type, type.str()};
  return &it->second;
}

const TypeEntry* Builder::Impl::intern_checked(std::string_view op, const Type& type) {
  for (int64_t dim : type.dims) {
    if (dim < 0) reject(op, "dimensions must not be negative, found ", type.str());
  }
  return intern(type);
}

Value Builder::Impl::new_value(const TypeEntry* type, char kind, int32_t number) {
  values.push_back({type, scopes.back().id, number, kind, false});
  return {owner, static_cast<int32_t>(values.size()) - 1};
}

void Builder::Impl::use(std::string_view op, Value v) const {
  if (!v) reject(op, "an operand is empty (a Value that no operation made)");
  if (v.builder_ != owner) reject(op, "an operand belongs to another builder");
  const int32_t home = info(v).scope;
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    if (scope->id == home) return;
    if (!scope->isolated) continue;
    std::string name;
    append_name(name, v);
    reject(op, name, " is not visible in this body of ", scope->op,
           ", which sees only its own arguments and what is made in it");
  }
}

void Builder::Impl::check_dtype(std::string_view op, Value v, unsigned allowed) const {
  if ((kind_of(type(v).dtype) & allowed) == 0) {
    reject(op, "operands must be ", kinds_text(allowed), ", found ", entry(v)->text);
  }
}

void Builder::Impl::check_same(std::string_view op, Value a, Value b) const {
  if (entry(a) != entry(b)) {
    reject(op, "operands must have one type, found ", entry(a)->text, " and ", entry(b)->text);
  }
}

Value Builder::Impl::add(std::string_view op, std::span<const Value> operands, const Attributes& attributes,
                         const TypeEntry* result) {
  return add(op, operands, {}, attributes, std::span<const TypeEntry* const>(&result, 1)).front();
}

Values Builder::Impl::add(std::string_view op, std::span<const Value> operands, std::span<const Body> bodies,
                          const Attributes& attributes, std::span<const TypeEntry* const> results) {
  if (finished) throw Error(Code::kFailedPrecondition, base::str(op, ": the program is finished already"));
  ++operations;
  Values made;
  made.reserve(results.size());
  for (const TypeEntry* result : results) made.push_back(new_value(result, 'v', next_result++));
  std::string& text = scopes.back().text;
  append_indent(text);
  append_names(text, made);
  text += made.empty() ? "\"" : " = \"";
  text += op;
  text += "\"(";
  append_names(text, operands);
  text += ')';
  for (size_t i = 0; i < bodies.size(); ++i) {
    text += i == 0 ? " ({\n" : "}, {\n";
    text += bodies[i].text;
    append_indent(text);
  }
  if (!bodies.empty()) text += "})";
  text += attributes.text();
  append_signature(text, operands, results);
  return made;
}

Builder::Impl::Body Builder::Impl::region(std::string_view op, bool isolated,
                                          std::span<const TypeEntry* const> arguments,
                                          const stablehlo::Region& body) {
  if (!body) reject(op, "a region's body is an empty function");
  // The block ends with its scope, also when the body throws.
  struct Close {
    std::deque<Scope>& scopes;
    ~Close() { scopes.pop_back(); }
  };
  scopes.push_back({next_scope++, isolated, op, {}, {}});
  const Close close{scopes};
  Values inputs;
  inputs.reserve(arguments.size());
  for (const TypeEntry* argument : arguments) inputs.push_back(new_value(argument, 'b', next_argument++));

  const Values results = body(*owner, inputs);
  use(op, results);
  Body made;
  if (!inputs.empty()) {
    made.text.append(2 * scopes.size(), ' ');
    made.text += "^bb0(";
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i > 0) made.text += ", ";
      append_name(made.text, inputs[i]);
      made.text += ": ";
      made.text += arguments[i]->text;
    }
    made.text += "):\n";
  }
  made.text += scopes.back().text;
  append_indent(made.text);
  made.text += "\"stablehlo.return\"(";
  append_names(made.text, results);
  made.text += ')';
  append_signature(made.text, results, {});
  for (Value v : results) made.results.push_back(entry(v));
  return made;
}

void Builder::Impl::check_results(std::string_view op, std::string_view what, const Body& body,
                                  std::span<const TypeEntry* const> expected) const {
  if (std::equal(body.results.begin(), body.results.end(), expected.begin(), expected.end())) return;
  std::string wanted, found;
  append_types(wanted, expected);
  append_types(found, body.results);
  reject(op, what, " must return ", wanted, ", it returns ", found);
}

Builder::Impl::Body Builder::Impl::reducer(std::string_view op, std::span<const TypeEntry* const> scalars,
                                           const stablehlo::Region& body) {
  std::vector<const TypeEntry*> arguments(scalars.begin(), scalars.end());
  arguments.insert(arguments.end(), scalars.begin(), scalars.end());
  Body made = region(op, true, arguments, body);
  check_results(op, "its body", made, scalars);
  return made;
}

void Builder::Impl::append_name(std::string& text, Value v) const {
  const ValueInfo& found = info(v);
  text += found.kind == 'p' ? "%arg" : found.kind == 'b' ? "%b" : "%";
  append_number(text, found.number);
}

void Builder::Impl::append_names(std::string& text, std::span<const Value> list) const {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text += ", ";
    append_name(text, list[i]);
  }
}

void Builder::Impl::append_types(std::string& text, std::span<const TypeEntry* const> list) const {
  text += '(';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text += ", ";
    text += list[i]->text;
  }
  text += ')';
}

void Builder::Impl::append_signature(std::string& text, std::span<const Value> operands,
                                     std::span<const TypeEntry* const> results) const {
  text += " : (";
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) text += ", ";
    text += entry(operands[i])->text;
  }
  text += ") -> ";
  if (results.size() == 1) {
    text += results[0]->text;
  } else {
    append_types(text, results);
  }
  // A reduction's body needs no names: its operation has one.
  if (scopes.size() == 1 || !scopes.back().isolated) text += location;
  text += '\n';
}

}  // namespace sluice::stablehlo
