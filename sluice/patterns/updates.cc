#include "sluice/patterns/updates.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {
namespace {

using stablehlo::Rewriter;
using Op = UpdateCode::Op;

constexpr size_t kWorthMembers = 8;
constexpr int64_t kWorthElements = 65'536;
constexpr size_t kMaxSteps = 64;

// Returns the step for an operation.
std::optional<Op> step_of(const Operation& op) {
  if (op.is("stablehlo.add")) return Op::kAdd;
  if (op.is("stablehlo.subtract")) return Op::kSubtract;
  if (op.is("stablehlo.multiply")) return Op::kMultiply;
  if (op.is("stablehlo.divide")) return Op::kDivide;
  if (op.is("stablehlo.sqrt")) return Op::kSqrt;
  if (op.is_composite(stablehlo::composites::kMaximum)) return Op::kMaximum;
  return {};
}

// An operand of a step.
struct Source {
  enum class Kind { kTensor, kUnit, kNumber, kConstant };
  Kind kind = Kind::kTensor;
  Value value;           // the tensor, the unit, or the vector of the number
  int64_t position = 0;  // of the number
};

// Returns a run-time scalar: one element of a vector of f32, without dimensions.
std::optional<Source> number_of(const Rewriter& r, Value v) {
  const Operation* const reshape = r.made_by(v, "stablehlo.reshape");
  if (reshape == nullptr || v.rank() != 0) return {};
  const Value element = reshape->operands[0];
  if (r.parameter(element) >= 0 && element.rank() == 1) return Source{Source::Kind::kNumber, element, 0};
  const Operation* const slice = r.made_by(element, "stablehlo.slice");
  if (slice == nullptr || slice->operands[0].rank() != 1) return {};
  return Source{Source::Kind::kNumber, slice->operands[0], slice->attributes.list("start_indices")[0]};
}

Source source_of(const Rewriter& r, Value v) {
  const Operation* const broadcast = r.made_by(v, "stablehlo.broadcast_in_dim");
  const bool of_one = broadcast != nullptr && broadcast->operands[0].rank() == 0;
  const Value one = of_one ? broadcast->operands[0] : v;
  if (r.made_by(one, "stablehlo.constant") != nullptr) return {Source::Kind::kConstant, one};
  if (const auto number = number_of(r, one)) return *number;
  return {of_one ? Source::Kind::kUnit : Source::Kind::kTensor, one};
}

// Returns whether the operation is a step on f32 tensors, with no constants.
bool is_elementwise(const Rewriter& r, const Operation& op) {
  if (!step_of(op) || op.results[0].dtype() != DType::kF32) return false;
  bool has_tensor = false;
  for (const Value v : op.operands) {
    const Source source = source_of(r, v);
    if (source.kind == Source::Kind::kConstant) return false;
    has_tensor |= source.kind == Source::Kind::kTensor;
  }
  return has_tensor;
}

// Returns whether a and b are one value, or the same views of one value (an optimizer reads a gradient
// several times).
bool same_value(const Rewriter& r, Value a, Value b) {
  if (a == b) return true;
  const Operation *const x = r.maker(a), *const y = r.maker(b);
  if (x == nullptr || y == nullptr || x->name != y->name || x->attributes != y->attributes) return false;
  const bool view = x->operands.size() == 1 && y->operands.size() == 1 && x->results.size() == 1 &&
                    x->bodies.empty() && x->target.empty();
  return view && same_value(r, x->operands[0], y->operands[0]);
}

// An update with registers numbered as they are found.
struct Member : Update {
  enum class Kind { kTensor, kUnit, kNumber, kStep };
  struct Register {
    Kind kind;
    int64_t index;
  };
  struct Step {
    Op op;
    Register a, b;
  };
  int64_t elements = 0;
  std::vector<Step> steps;
  std::unordered_map<int32_t, Register> made;  // by the id of a step's result
  bool usable = true;

  Register register_of(const Rewriter& r, Value v) {
    if (const auto found = made.find(v.id()); found != made.end()) return found->second;
    const Source source = source_of(r, v);
    if (source.kind == Source::Kind::kNumber) {
      usable = usable && (!vector || vector == source.value);
      vector = source.value;
      numbers.push_back(source.position);
      return {Kind::kNumber, static_cast<int64_t>(numbers.size()) - 1};
    }
    const bool unit = source.kind == Source::Kind::kUnit;
    Values& list = unit ? units : tensors;
    const auto at = std::find_if(list.begin(), list.end(),
                                 [&](Value known) { return same_value(r, known, source.value); });
    const auto index = at - list.begin();
    if (at == list.end()) list.push_back(source.value);
    return {unit ? Kind::kUnit : Kind::kTensor, index};
  }

  void add(const Rewriter& r, const Operation& op) {
    const Register a = register_of(r, op.operands[0]), b = register_of(r, op.operands.back());
    steps.push_back({*step_of(op), a, b});
    made[op.results[0].id()] = {Kind::kStep, static_cast<int64_t>(steps.size()) - 1};
    operations.push_back(&op);
    usable = usable && steps.size() <= kMaxSteps;
  }

  UpdateCode code() const {
    UpdateCode code;
    code.tensors = tensors.size();
    code.units = units.size();
    code.numbers = numbers.size();
    const auto at = [&](Register r) {
      switch (r.kind) {
        case Kind::kTensor:
          return r.index;
        case Kind::kUnit:
          return r.index + static_cast<int64_t>(code.tensors);
        case Kind::kNumber:
          return r.index + static_cast<int64_t>(code.tensors + code.units);
        case Kind::kStep:
          break;
      }
      return r.index + code.first_step();
    };
    for (const Step& step : steps) code.steps.push_back({step.op, at(step.a), at(step.b)});
    for (const Value result : results) code.results.push_back(at(made.at(result.id())));
    return code;
  }
};

// Reorders the tensors: results take their parameters' memory, so those parameters become the first tensors,
// in the results' order. Returns false if a result has no such parameter that the steps read.
bool results_first(Member& member, const std::unordered_map<int32_t, Value>& parameter_of) {
  Values ordered;
  for (const Value result : member.results) {
    const auto parameter = parameter_of.find(result.id());
    if (parameter == parameter_of.end()) return false;
    const Value v = parameter->second;
    if (std::find(member.tensors.begin(), member.tensors.end(), v) == member.tensors.end()) return false;
    ordered.push_back(v);
  }
  const auto results = static_cast<int64_t>(ordered.size());
  Dims moved_to;
  for (const Value tensor : member.tensors) {
    moved_to.push_back(std::find(ordered.begin(), ordered.begin() + results, tensor) - ordered.begin());
    if (moved_to.back() == results) {
      moved_to.back() = static_cast<int64_t>(ordered.size());
      ordered.push_back(tensor);
    }
  }
  member.tensors = std::move(ordered);
  for (Member::Step& step : member.steps)
    for (Member::Register* reg : {&step.a, &step.b})
      if (reg->kind == Member::Kind::kTensor) reg->index = moved_to[static_cast<size_t>(reg->index)];
  return true;
}

// Returns whether a step uses v as a tensor of its result's type.
bool reads_as_tensor(const Rewriter& r, const Operation& op, Value v) {
  return v.type() == op.results[0].type() && source_of(r, v).kind == Source::Kind::kTensor;
}

// Returns, in order, the element-wise operations whose results are used only by such operations.
std::vector<const Operation*> ends_in_themselves(const Rewriter& r) {
  std::set<int32_t> used_elsewhere;
  std::vector<const Operation*> found;
  const auto& all = r.operations();
  for (auto op = all.rbegin(); op != all.rend(); ++op) {
    const bool chosen = is_elementwise(r, **op) && !used_elsewhere.contains((*op)->results[0].id());
    if (chosen) found.push_back(op->get());
    stablehlo::for_operands(**op, [&](Value v) {
      if (!chosen || !reads_as_tensor(r, **op, v)) used_elsewhere.insert(v.id());
    });
  }
  std::reverse(found.begin(), found.end());
  return found;
}

// Disjoint sets of numbers that can be joined.
class DisjointSets {
 public:
  explicit DisjointSets(size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), size_t{0}); }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t a, size_t b) { parent_[find(b)] = find(a); }

 private:
  std::vector<size_t> parent_;
};

// Groups the operations into members: operations that read one another's results belong to one member.
std::vector<Member> find_members(const Rewriter& r) {
  const std::vector<const Operation*> chosen = ends_in_themselves(r);
  std::unordered_map<int32_t, size_t> maker;  // by value: the index of the operation in `chosen`
  DisjointSets connected(chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    for (const Value v : chosen[i]->operands)
      if (const auto found = maker.find(v.id()); found != maker.end()) connected.join(found->second, i);
    maker[chosen[i]->results[0].id()] = i;
  }
  std::set<int32_t> results;
  for (const Value v : r.results()) results.insert(v.id());
  std::vector<Member> members;
  std::unordered_map<size_t, size_t> by_root;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto [at, added] = by_root.try_emplace(connected.find(i), members.size());
    if (added) members.emplace_back();
    Member& member = members[at->second];
    const Value result = chosen[i]->results[0];
    member.elements = result.type().numel();
    member.add(r, *chosen[i]);
    if (results.contains(result.id())) member.results.push_back(result);
  }
  return members;
}

// Drops members that share a parameter: no other member may read a parameter that one overwrites.
void drop_those_that_share(const Rewriter& r, std::vector<Member>& members) {
  std::unordered_map<int32_t, std::vector<size_t>> readers;  // by parameter
  for (size_t m = 0; m < members.size(); ++m)
    for (const Values* values : {&members[m].tensors, &members[m].units})
      for (const Value v : *values)
        if (r.parameter(v) >= 0) readers[v.id()].push_back(m);
  std::vector<bool> shares(members.size(), false);
  for (const Member& member : members) {
    if (!member.usable) continue;
    for (size_t i = 0; i < member.results.size(); ++i) {
      const auto& all = readers[member.tensors[i].id()];
      if (all.size() > 1)
        for (size_t m : all) shares[m] = true;
    }
  }
  for (size_t m = 0; m < members.size(); ++m)
    if (shares[m]) members[m].usable = false;
}

}  // namespace

std::vector<UpdateGroup> find_updates(const Rewriter& r) {
  std::unordered_map<int32_t, Value> parameter_of;  // by result: the parameter whose memory it takes
  for (size_t i = 0; i < r.aliases().size(); ++i)
    if (r.aliases()[i] >= 0)
      parameter_of[r.results()[static_cast<size_t>(r.aliases()[i])].id()] = r.parameter_value(i);
  std::vector<Member> members = find_members(r);
  for (Member& member : members)
    member.usable = member.usable && !member.results.empty() && results_first(member, parameter_of);
  drop_those_that_share(r, members);

  // Groups members by their steps and the vector of their numbers.
  std::map<Dims, std::vector<const Member*>> by_code;
  std::vector<Dims> order;
  for (const Member& member : members) {
    if (!member.usable) continue;
    Dims key = member.code().to_words();
    key.push_back(member.vector ? member.vector.id() : -1);
    auto& alike = by_code[key];
    if (alike.empty()) order.push_back(key);
    alike.push_back(&member);
  }
  std::vector<UpdateGroup> groups;
  for (const Dims& key : order) {
    const auto& alike = by_code[key];
    int64_t elements = 0;
    for (const Member* member : alike) elements += member->elements;
    if (alike.size() < kWorthMembers && elements < kWorthElements) continue;
    UpdateGroup& group = groups.emplace_back();
    group.code = alike.front()->code();
    for (const Member* member : alike) group.members.push_back(*member);
  }
  return groups;
}

}  // namespace sluice::patterns
