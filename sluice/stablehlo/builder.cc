// The core of the builder: types, values, blocks, and how an operation is added.
#include "sluice/stablehlo/builder.h"

#include <algorithm>
#include <array>
#include <functional>

#include "sluice/base/check.h"
#include "sluice/stablehlo/builder/impl.h"

namespace sluice::stablehlo {
namespace {

unsigned kind_of(DType dtype) {
  if (is_float(dtype)) return kFloats;
  if (is_complex(dtype)) return kComplex;
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
  if ((kinds & kComplex) != 0) names.emplace_back("complex numbers");
  return base::join(names, " or ");
}

// Returns whether an operation is a collective, for which other replicas wait.
bool is_collective(std::string_view op) {
  constexpr std::array kCollectives = {kAllReduce, kReduceScatter, std::string_view("stablehlo.all_gather"),
                                       std::string_view("stablehlo.all_to_all"),
                                       std::string_view("stablehlo.collective_permute")};
  return std::find(kCollectives.begin(), kCollectives.end(), op) != kCollectives.end();
}

}  // namespace

bool all_removable(const std::vector<Block>& bodies) {
  return std::all_of(bodies.begin(), bodies.end(), [](const Block& body) {
    return std::all_of(body.operations.begin(), body.operations.end(),
                       [](const auto& op) { return op->removable; });
  });
}

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

void Builder::set_location(std::string_view name, int64_t id) {
  Impl::Location location{std::string(name), id};
  if (impl_->locations.back() != location) impl_->locations.push_back(std::move(location));
}

std::string_view Builder::location(int number) const {
  return impl_->locations.at(static_cast<size_t>(number)).name;
}

void Builder::set_precision(Precision precision) { impl_->precision = precision; }

Precision Builder::precision() const { return impl_->precision; }

void Builder::set_explicit_nan(bool on) { impl_->explicit_nan = on; }

Value Builder::parameter(const Type& type) {
  if (impl_->scopes.size() != 1 || impl_->finished) {
    throw_error(Code::kFailedPrecondition,
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

Values Builder::Impl::add(std::string_view op, std::span<const Value> operands, std::span<Body> bodies,
                          const Attributes& attributes, std::span<const TypeEntry* const> results) {
  if (finished) throw_error(Code::kFailedPrecondition, base::str(op, ": the program is finished already"));
  ++operations;
  auto made = std::make_unique<Operation>();
  made->name = op;
  made->operands.assign(operands.begin(), operands.end());
  for (const TypeEntry* result : results) made->results.push_back(new_value(result, 'v', next_result++));
  for (Body& body : bodies) made->bodies.push_back(std::move(body.block));
  made->removable = !is_collective(op) && all_removable(made->bodies);
  made->attributes = attributes;
  // A reduction's body needs no names, because its operation has one.
  made->named = scopes.size() == 1 || !scopes.back().isolated || scopes.back().op == kManual;
  made->location = static_cast<int>(locations.size()) - 1;
  Values values = made->results;
  scopes.back().block.operations.push_back(std::move(made));
  return values;
}

Builder::Impl::Body Builder::Impl::region(std::string_view op, bool isolated,
                                          std::span<const TypeEntry* const> arguments,
                                          const stablehlo::Region& body) {
  if (!body) reject(op, "a region's body is an empty function");
  // The block ends with its scope, even if the body throws.
  struct Close {
    std::deque<Scope>& scopes;
    ~Close() { scopes.pop_back(); }
  };
  scopes.push_back({next_scope++, isolated, op, {}, {}});
  const Close close{scopes};
  Values inputs;
  inputs.reserve(arguments.size());
  for (const TypeEntry* argument : arguments) inputs.push_back(new_value(argument, 'b', next_argument++));

  Values results = body(*owner, inputs);
  use(op, results);
  Body made;
  for (Value v : results) made.results.push_back(entry(v));
  made.block = std::move(scopes.back().block);
  made.block.arguments = std::move(inputs);
  made.block.results = std::move(results);
  made.block.named = !isolated || op == kManual;
  made.block.location = static_cast<int>(locations.size()) - 1;
  return made;
}

Values Builder::composite(std::string_view name, const Values& operands, const CallAttributes& attributes,
                          const std::function<Values()>& body) {
  if (impl_->scopes.size() != 1) return body();
  const auto place = [this] { return impl_->scopes.back().block.operations.size(); };
  const size_t begin = place();
  const auto first = static_cast<int32_t>(impl_->values.size());
  Values made = body();
  // If a result existed before, nothing is marked: that value has another meaning too.
  if (made.empty() || std::any_of(made.begin(), made.end(), [&](Value v) { return v.id() < first; }))
    return made;
  const int location = static_cast<int>(impl_->locations.size()) - 1;
  impl_->composites.push_back({std::string(name), operands, made, attributes, begin, place(), location});
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

}  // namespace sluice::stablehlo
