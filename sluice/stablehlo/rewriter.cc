#include "sluice/stablehlo/rewriter.h"

#include <algorithm>
#include <unordered_set>

#include "sluice/base/check.h"
#include "sluice/stablehlo/builder/impl.h"

namespace sluice::stablehlo {
namespace {

// Replaces composites by their bodies.
void spread(Operations& from, Operations& to) {
  for (auto& op : from) {
    if (op->name == kComposite)
      spread(op->bodies[0].operations, to);
    else
      to.push_back(std::move(op));
  }
}

}  // namespace

// Makes one operation of each composite, with its parts as its body.
struct Rewriter::Nest {
  using Composites = std::span<const Builder::Impl::Composite* const>;
  Operations& flat;

  // Returns operations [begin, end) of the flat list. `inside`: the composites among them, an outer one
  // before the inner ones.
  Operations build(size_t begin, size_t end, Composites inside) {
    Operations made;
    while (!inside.empty()) {
      const Builder::Impl::Composite& outer = *inside.front();
      for (; begin < outer.begin; ++begin) made.push_back(std::move(flat[begin]));
      size_t count = 1;
      while (count < inside.size() && inside[count]->begin < outer.end) ++count;
      auto composite = std::make_unique<Operation>();
      composite->name = kComposite;
      composite->target = outer.name;
      composite->operands = outer.operands;
      composite->results = outer.results;
      composite->call = outer.attributes;
      composite->location = outer.location;
      composite->bodies.emplace_back().operations =
          build(outer.begin, outer.end, inside.subspan(1, count - 1));
      hoist_constants(*composite, made);
      composite->removable = all_removable(composite->bodies);
      made.push_back(std::move(composite));
      begin = outer.end;
      inside = inside.subspan(count);
    }
    for (; begin < end; ++begin) made.push_back(std::move(flat[begin]));
    return made;
  }

  // Moves constants out of a composite: they are shared, and other readers must not lose them with the
  // composite.
  static void hoist_constants(Operation& composite, Operations& to) {
    Operations rest;
    for (auto& op : composite.bodies[0].operations)
      (op->is("stablehlo.constant") ? to : rest).push_back(std::move(op));
    composite.bodies[0].operations = std::move(rest);
  }
};

Rewriter::Rewriter(Builder& builder, Values results, std::vector<Donation> donations)
    : b(builder), results_(std::move(results)), aliases_(builder.impl_->parameters.size(), -1) {
  for (size_t i = 0; i < donations.size(); ++i)
    if (donations[i].kind == Donation::Kind::kAliasOutput) aliases_[i] = donations[i].output;
  std::vector<const Builder::Impl::Composite*> composites;
  for (const auto& composite : b.impl_->composites) composites.push_back(&composite);
  // The builder notes an inner composite before the outer one.
  std::reverse(composites.begin(), composites.end());
  std::stable_sort(composites.begin(), composites.end(), [](const auto* x, const auto* y) {
    return x->begin != y->begin ? x->begin < y->begin : x->end > y->end;
  });
  Operations flat = std::move(list());
  list() = Nest{flat}.build(0, flat.size(), composites);
  b.impl_->composites.clear();
  settle();
}

Operations& Rewriter::list() const { return b.impl_->scopes.front().block.operations; }

const Operations& Rewriter::operations() const { return list(); }

Value Rewriter::mapped(Value v) const {
  if (!v) return v;
  const auto found = replaced_.find(v.id());
  return found == replaced_.end() ? v : found->second;
}

void Rewriter::remap(Operation& op) const {
  for (Value& v : op.operands) v = mapped(v);
  for (Block& body : op.bodies) {
    for (auto& inner : body.operations) remap(*inner);
    for (Value& v : body.results) v = mapped(v);
  }
}

void Rewriter::each(const Pattern& pattern) {
  Operations old = std::move(list());
  list().clear();
  b.impl_->scopes.front().splats.clear();  // these constants may be placed after the operations that are
                                           // added now
  auto& locations = b.impl_->locations;
  for (auto& op : old) {
    if (!replaced_.empty()) remap(*op);
    const size_t before = list().size();
    name_as(*op);
    const Values made = pattern(*op);
    if (list().size() == before) locations.pop_back();
    for (size_t i = before; i < list().size(); ++i) {
      makers_.resize(b.impl_->values.size(), nullptr);
      readers_.resize(b.impl_->values.size(), 0);
      for (Value v : list()[i]->results) makers_[static_cast<size_t>(v.id())] = list()[i].get();
    }
    if (made.empty()) {
      list().push_back(std::move(op));
      continue;
    }
    replace(*op, made);
    for (size_t i = 0; i < made.size(); ++i)
      readers_[static_cast<size_t>(made[i].id())] += readers(op->results[i]);
  }
  for (Value& v : results_) v = mapped(v);
  replaced_.clear();
  settle();
}

void Rewriter::replace(const Operation& op, const Values& made) {
  SLUICE_CHECK(made.size() == op.results.size(), "a pattern gave ", made.size(), " values for ",
               op.results.size(), " results of ", op.name, " ", op.target);
  for (size_t i = 0; i < made.size(); ++i) {
    const Value was = op.results[i];
    SLUICE_CHECK(made[i].type() == was.type(), "a pattern gave ", made[i].type().str(), " for ",
                 was.type().str(), ", a result of ", op.name, " ", op.target);
    replaced_[was.id()] = made[i];
  }
}

void Rewriter::replace_from_here(Value v, Value by) {
  SLUICE_CHECK(v.type() == by.type(), "a pattern gave ", by.type().str(), " for ", v.type().str());
  replaced_[v.id()] = by;
}

void Rewriter::each_in_loops(const Pattern& pattern) {
  for (auto& op : list()) {
    if (!op->is("stablehlo.while") || op->results.empty()) continue;
    rewrite_body(op->bodies[1], pattern);
  }
  settle();
}

void Rewriter::rewrite_body(Block& body, const Pattern& pattern) {
  Operations old = std::move(body.operations);
  // The body is built again with its remaining operations, under its own scope number, so that it sees the
  // same values.
  b.impl_->scopes.push_back({b.impl_->info(body.arguments.front()).scope, false, "stablehlo.while", {}, {}});
  Operations& now = b.impl_->scopes.back().block.operations;
  for (auto& op : old) {
    remap(*op);
    const size_t before = now.size();
    name_as(*op);
    const Values made = pattern(*op);
    if (now.size() == before) b.impl_->locations.pop_back();
    if (made.empty())
      now.push_back(std::move(op));
    else
      replace(*op, made);
  }
  for (Value& v : body.results) v = mapped(v);
  body.operations = std::move(now);
  b.impl_->scopes.pop_back();
  replaced_.clear();
}

void Rewriter::open(std::string_view name) {
  Operations old = std::move(list());
  list().clear();
  for (auto& op : old) {
    if (op->is_composite(name))
      for (auto& inner : op->bodies[0].operations) list().push_back(std::move(inner));
    else
      list().push_back(std::move(op));
  }
  settle();
}

void Rewriter::flatten() {
  Operations old = std::move(list());
  list().clear();
  spread(old, list());
  std::stable_partition(list().begin(), list().end(),
                        [](const auto& op) { return op->is("stablehlo.constant"); });
  settle();
}

namespace {

Value in_place_of(Value v, const std::unordered_map<int32_t, Value>& values) {
  if (!v) return v;
  const auto found = values.find(v.id());
  return found == values.end() ? v : found->second;
}

// Returns "dense<0.5>" of a constant of one number.
std::string number_text(const Operation& constant) {
  const std::string text = constant.attributes.text();
  const size_t begin = text.find("dense<");
  return text.substr(begin, text.find('>', begin) + 1 - begin);
}

}  // namespace

Block Rewriter::copy_block(const Block& block, std::unordered_map<int32_t, Value>& values) {
  auto& impl = *b.impl_;
  Block made;
  made.named = block.named;
  made.location = static_cast<int>(impl.locations.size()) - 1;
  for (Value v : block.arguments) {
    made.arguments.push_back(impl.new_value(impl.entry(v), 'b', impl.next_argument++));
    values[v.id()] = made.arguments.back();
  }
  for (const auto& op : block.operations) made.operations.push_back(copy_alone(*op, values));
  for (Value v : block.results) made.results.push_back(in_place_of(v, values));
  return made;
}

std::unique_ptr<Operation> Rewriter::copy_alone(const Operation& op,
                                                std::unordered_map<int32_t, Value>& values,
                                                const std::vector<Type>& types) {
  auto& impl = *b.impl_;
  auto made = std::make_unique<Operation>();
  made->name = op.name;
  made->target = op.target;
  made->attributes = op.attributes;
  made->call = op.call;
  made->removable = op.removable;
  made->named = op.named;
  made->location = static_cast<int>(impl.locations.size()) - 1;
  for (Value v : op.operands) made->operands.push_back(in_place_of(v, values));
  for (const Block& body : op.bodies) made->bodies.push_back(copy_block(body, values));
  if (!types.empty() && op.is("stablehlo.constant"))
    made->attributes =
        Attributes().raw("value", base::str(number_text(op), " : ", impl.intern(types[0])->text));
  for (size_t i = 0; i < op.results.size(); ++i) {
    const TypeEntry* const type = types.empty() ? impl.entry(op.results[i]) : impl.intern(types[i]);
    made->results.push_back(impl.new_value(type, 'v', impl.next_result++));
    values[op.results[i].id()] = made->results.back();
  }
  return made;
}

Values Rewriter::copy(const Operation& op, const Values& operands,
                      const std::unordered_map<int32_t, Value>& seen, const std::vector<Type>& types) {
  SLUICE_CHECK(operands.size() == op.operands.size(), "a copy of ", op.name, " has ", operands.size(),
               " operands, not ", op.operands.size());
  std::unordered_map<int32_t, Value> values = seen;
  auto made = copy_alone(op, values, types);
  made->operands = operands;
  Values results = made->results;
  ++b.impl_->operations;
  b.impl_->scopes.back().block.operations.push_back(std::move(made));
  return results;
}

void Rewriter::settle() {
  makers_.assign(b.impl_->values.size(), nullptr);
  readers_.assign(b.impl_->values.size(), 0);
  for (Value v : results_) ++readers_[static_cast<size_t>(v.id())];
  Operations kept;
  for (size_t i = list().size(); i-- > 0;) {
    auto& op = list()[i];
    const bool read =
        std::any_of(op->results.begin(), op->results.end(), [&](Value v) { return readers(v) > 0; });
    if (!read && op->removable) continue;
    for (Value v : op->results) makers_[static_cast<size_t>(v.id())] = op.get();
    // A composite counts as one reader of each of its operands, no matter how often its body reads them.
    if (op->name == kComposite) {
      std::unordered_set<int32_t> known;
      for (Value v : op->operands) {
        if (!v) continue;
        ++readers_[static_cast<size_t>(v.id())];
        known.insert(v.id());
      }
      for_operands(*op, [&](Value v) {
        if (known.insert(v.id()).second) ++readers_[static_cast<size_t>(v.id())];
      });
    } else {
      for_operands(*op, [&](Value v) { ++readers_[static_cast<size_t>(v.id())]; });
    }
    kept.push_back(std::move(op));
  }
  std::reverse(kept.begin(), kept.end());
  list() = std::move(kept);
}

const Operation* Rewriter::maker(Value v) const {
  return v && static_cast<size_t>(v.id()) < makers_.size() ? makers_[static_cast<size_t>(v.id())] : nullptr;
}

const Operation* Rewriter::made_by(Value v, std::string_view name) const {
  const Operation* const op = maker(v);
  return op != nullptr && op->is(name) ? op : nullptr;
}

const Operation* Rewriter::composite(Value v, std::string_view name) const {
  const Operation* const op = maker(v);
  return op != nullptr && op->is_composite(name) ? op : nullptr;
}

const Operation* Rewriter::call(Value v, std::string_view target) const {
  const Operation* const op = maker(v);
  return op != nullptr && op->is_call(target) ? op : nullptr;
}

Value Rewriter::before_reshapes(Value v) const {
  while (const Operation* const op = made_by(v, "stablehlo.reshape")) v = op->operands[0];
  return v;
}

int Rewriter::readers(Value v) const {
  return static_cast<size_t>(v.id()) < readers_.size() ? readers_[static_cast<size_t>(v.id())] : 0;
}

void Rewriter::name_as(const Operation& op) {
  auto& locations = b.impl_->locations;
  locations.push_back(locations[static_cast<size_t>(op.location)]);
}

int32_t Rewriter::parameter(Value v) const {
  const auto& info = b.impl_->info(v);
  return info.kind == 'p' ? info.number : -1;
}

Value Rewriter::parameter_value(size_t number) const { return b.impl_->parameters[number]; }

void Rewriter::replace_results(const std::unordered_map<int32_t, Value>& by_id) {
  for (Value& v : results_)
    if (const auto found = by_id.find(v.id()); found != by_id.end()) v = found->second;
  settle();
}

Values Rewriter::finish() {
  Operations nested = std::move(list());
  list().clear();
  spread(nested, list());
  return results_;
}

}  // namespace sluice::stablehlo
