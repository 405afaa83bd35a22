#include "sluice/device/updates.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sluice/base/strings.h"

namespace sluice::device {

// A namespace of its own: this room is built in unity files.
namespace updates_detail {

using stablehlo::UpdateCode;
using Op = UpdateCode::Op;

constexpr size_t kWorthMembers = 8;
constexpr int64_t kWorthElements = 65'536;
constexpr size_t kMaxSteps = 64;

// The rows that have steps. In their arguments' names:
enum class Form : uint8_t {
  kOne,      // op(self)
  kTwo,      // self op other
  kScaled,   // self op alpha * other
  kProduct,  // self + (value * tensor1) op tensor2
};
struct Formula {
  std::string_view row;
  Op op;
  Form form;
};
constexpr Formula kFormulas[] = {
    {"aten::add.Tensor", Op::kAdd, Form::kScaled},      {"aten::add.Scalar", Op::kAdd, Form::kScaled},
    {"aten::sub.Tensor", Op::kSubtract, Form::kScaled}, {"aten::sub.Scalar", Op::kSubtract, Form::kScaled},
    {"aten::mul.Tensor", Op::kMultiply, Form::kTwo},    {"aten::mul.Scalar", Op::kMultiply, Form::kTwo},
    {"aten::div.Tensor", Op::kDivide, Form::kTwo},      {"aten::div.Scalar", Op::kDivide, Form::kTwo},
    {"aten::maximum", Op::kMaximum, Form::kTwo},        {"aten::sqrt", Op::kSqrt, Form::kOne},
    {"aten::addcmul", Op::kMultiply, Form::kProduct},   {"aten::addcdiv", Op::kDivide, Form::kProduct},
};

const Formula* formula_of(const Instance& instance) {
  const auto found = std::find_if(std::begin(kFormulas), std::end(kFormulas),
                                  [&](const Formula& f) { return f.row == instance.row->name; });
  return found == std::end(kFormulas) ? nullptr : found;
}

bool one_element(TypeRef type) { return type->type.dims.empty(); }

// f32 in and out, every operand with the result's dims or with none.
bool is_elementwise(const Instance& instance) {
  using stablehlo::DType;
  if (formula_of(instance) == nullptr || instance.results.size() != 1 || instance.results[0] == nullptr)
    return false;
  const TypeRef result = instance.results[0];
  if (result->type.dtype != DType::kF32) return false;
  bool has_tensor = false;
  for (TypeRef operand : instance.operands) {
    has_tensor |= operand == result;
    if (operand != result && !(one_element(operand) && operand->type.dtype == DType::kF32)) return false;
  }
  return has_tensor && std::all_of(instance.slots.begin(), instance.slots.end(),
                                   [](Slot slot) { return slot.kind == ScalarClass::kF32; });
}

// Whether both are the same value: one value, or the same views of one (an optimizer reads a gradient several
// times).
bool same_value(const Trace& trace, Ref a, Ref b) {
  if (a == b) return true;
  if (a.leaf() || b.leaf() || a.output != b.output) return false;
  const Node &x = trace.nodes[a.node], &y = trace.nodes[b.node];
  if (x.instance != y.instance || x.instance->row->random || !x.instance->slots.empty()) return false;
  if (x.instance->operands.size() != 1) return false;
  return same_value(trace, trace.inputs[x.first_input], trace.inputs[y.first_input]);
}

// An update with registers numbered as they are found.
struct Member : Update {
  enum class Kind : uint8_t { kTensor, kUnit, kNumber, kStep };
  struct Register {
    Kind kind;
    int64_t index;
  };
  struct Step {
    Op op;
    Register a, b;
  };
  TypeRef type = nullptr;
  std::vector<Step> steps;
  std::map<uint32_t, Register> made;  // by node
  bool usable = true;

  Register number(int64_t position) {
    numbers.push_back(position);
    return {Kind::kNumber, static_cast<int64_t>(numbers.size()) - 1};
  }
  Register step(Op op, Register a, Register b) {
    steps.push_back({op, a, b});
    return {Kind::kStep, static_cast<int64_t>(steps.size()) - 1};
  }
  Register value(const Trace& trace, Ref ref, TypeRef of) {
    if (!ref.leaf())
      if (const auto found = made.find(ref.node); found != made.end()) return found->second;
    const bool unit = of != type;
    std::vector<Ref>& list = unit ? units : tensors;
    const auto at =
        std::find_if(list.begin(), list.end(), [&](Ref known) { return same_value(trace, known, ref); });
    const auto index = at - list.begin();
    if (at == list.end()) list.push_back(ref);
    return {unit ? Kind::kUnit : Kind::kTensor, index};
  }
};

// The arguments of one node as registers.
class Arguments {
 public:
  Arguments(const Trace& trace, const Node& node, int64_t first_number, Member& member)
      : trace_(trace), node_(node), first_number_(first_number), member_(member) {}

  // Nothing where the argument is the constant 1 (alpha, value).
  std::optional<Member::Register> find(std::string_view name) {
    const Instance& instance = *node_.instance;
    size_t operand = 0;
    for (size_t i = 0; i < instance.args.size(); ++i) {
      const ops::Arg& arg = instance.args[i];
      const bool tensor = arg.kind == ops::Arg::Kind::kTensor && !arg.from_slot;
      if ((*instance.names)[i] != name) {
        operand += tensor ? 1 : 0;
        continue;
      }
      if (tensor)
        return member_.value(trace_, trace_.inputs[node_.first_input + operand], instance.operands[operand]);
      for (size_t s = 0; s < instance.slots.size(); ++s)
        if (instance.slots[s].argument == i) return member_.number(first_number_ + static_cast<int64_t>(s));
      return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  const Trace& trace_;
  const Node& node_;
  int64_t first_number_;
  Member& member_;
};

// Adds the node's steps; false where an argument is of a kind that steps do not have.
bool add_steps(const Formula& formula, Arguments arguments, Member& member, uint32_t node) {
  const bool product = formula.form == Form::kProduct, one = formula.form == Form::kOne;
  const auto self = arguments.find("self");
  auto left = product ? arguments.find("tensor1") : self;
  auto right = one ? self : arguments.find(product ? "tensor2" : "other");
  if (!self || !left || !right) return false;
  if (formula.form == Form::kScaled)
    if (const auto alpha = arguments.find("alpha")) right = member.step(Op::kMultiply, *right, *alpha);
  if (product)
    if (const auto value = arguments.find("value")) left = member.step(Op::kMultiply, *value, *left);
  Member::Register result = member.step(formula.op, *left, *right);
  if (product) result = member.step(Op::kAdd, *self, result);
  member.made[node] = result;
  return true;
}

// Results take their leaves' memory: those leaves become the first tensors, in the results' order. False
// where a result has none that the steps read.
bool results_first(Member& member, const std::map<uint32_t, uint32_t>& leaf_of) {
  std::vector<Ref> ordered;
  for (uint32_t node : member.results) {
    const auto leaf = leaf_of.find(node);
    if (leaf == leaf_of.end()) return false;
    const Ref ref{leaf->second, Ref::kLeaf};
    if (std::find(member.tensors.begin(), member.tensors.end(), ref) == member.tensors.end()) return false;
    ordered.push_back(ref);
  }
  const size_t results = ordered.size();
  std::vector<int64_t> moved_to;
  for (const Ref& tensor : member.tensors) {
    const auto place = std::find(ordered.begin(), ordered.begin() + static_cast<int64_t>(results), tensor);
    moved_to.push_back(place - ordered.begin());
    if (moved_to.back() == static_cast<int64_t>(results)) {
      moved_to.back() = static_cast<int64_t>(ordered.size());
      ordered.push_back(tensor);
    }
  }
  member.tensors = std::move(ordered);
  const auto renumber = [&](Member::Register& r) {
    if (r.kind == Member::Kind::kTensor) r.index = moved_to[static_cast<size_t>(r.index)];
  };
  for (Member::Step& step : member.steps) {
    renumber(step.a);
    renumber(step.b);
  }
  return true;
}

UpdateCode code_of(const Member& member) {
  UpdateCode code;
  code.tensors = member.tensors.size();
  code.units = member.units.size();
  code.numbers = member.numbers.size();
  const auto at = [&](Member::Register r) {
    switch (r.kind) {
      case Member::Kind::kTensor:
        return r.index;
      case Member::Kind::kUnit:
        return r.index + static_cast<int64_t>(code.tensors);
      case Member::Kind::kNumber:
        return r.index + static_cast<int64_t>(code.tensors + code.units);
      case Member::Kind::kStep:
        break;
    }
    return r.index + code.first_step();
  };
  for (const Member::Step& step : member.steps) code.steps.push_back({step.op, at(step.a), at(step.b)});
  for (uint32_t node : member.results) code.results.push_back(at(member.made.at(node)));
  return code;
}

// [node]: whether it is element-wise and nothing but such nodes of the same type uses its result.
std::vector<bool> ends_in_itself(const Trace& trace, const Plan& plan) {
  std::vector<bool> used_elsewhere(trace.nodes.size(), false), result(trace.nodes.size(), false);
  for (auto number = plan.nodes.rbegin(); number != plan.nodes.rend(); ++number) {
    const Node& node = trace.nodes[*number];
    const Instance& instance = *node.instance;
    result[*number] = !used_elsewhere[*number] && is_elementwise(instance);
    for (size_t k = 0; k < instance.operands.size(); ++k) {
      const Ref input = trace.inputs[node.first_input + k];
      if (!input.leaf() && !(result[*number] && instance.operands[k] == instance.results[0]))
        used_elsewhere[input.node] = true;
    }
  }
  return result;
}

// Each node's member: nodes that read one another's results are one.
class Members {
 public:
  explicit Members(size_t nodes) : parent_(nodes) {
    for (uint32_t i = 0; i < nodes; ++i) parent_[i] = i;
  }
  uint32_t find(uint32_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void join(uint32_t a, uint32_t b) { parent_[find(b)] = find(a); }

 private:
  std::vector<uint32_t> parent_;
};

std::vector<Member> find_members(const Trace& trace, const Plan& plan) {
  const std::vector<bool> chosen = ends_in_itself(trace, plan);
  Members connected(trace.nodes.size());
  for (uint32_t number : plan.nodes) {
    if (!chosen[number]) continue;
    const Node& node = trace.nodes[number];
    for (size_t k = 0; k < node.instance->operands.size(); ++k) {
      const Ref input = trace.inputs[node.first_input + k];
      if (!input.leaf() && chosen[input.node]) connected.join(input.node, number);
    }
  }
  std::vector<bool> is_output(trace.nodes.size(), false);
  for (Ref output : plan.outputs) is_output[output.node] = true;

  std::vector<Member> members;
  std::map<uint32_t, size_t> by_root;
  int64_t next_number = 0;
  for (uint32_t number : plan.nodes) {
    const Node& node = trace.nodes[number];
    const int64_t first_number = next_number;
    next_number += std::count_if(node.instance->slots.begin(), node.instance->slots.end(),
                                 [](Slot slot) { return slot.kind == ScalarClass::kF32; });
    if (!chosen[number]) continue;
    const auto [at, added] = by_root.try_emplace(connected.find(number), members.size());
    if (added) members.emplace_back();
    Member& member = members[at->second];
    member.type = node.instance->results[0];
    member.nodes.push_back(number);
    if (is_output[number]) member.results.push_back(number);
    Arguments arguments(trace, node, first_number, member);
    member.usable = member.usable && add_steps(*formula_of(*node.instance), arguments, member, number) &&
                    member.steps.size() <= kMaxSteps;
  }
  return members;
}

// Of a leaf that one member overwrites no other may read.
void drop_those_that_share(std::vector<Member>& members) {
  std::map<uint32_t, std::vector<size_t>> readers;  // by leaf
  for (size_t m = 0; m < members.size(); ++m) {
    for (Ref ref : members[m].tensors)
      if (ref.leaf()) readers[ref.node].push_back(m);
    for (Ref ref : members[m].units)
      if (ref.leaf()) readers[ref.node].push_back(m);
  }
  std::vector<bool> shares(members.size(), false);
  for (const Member& member : members) {
    if (!member.usable) continue;
    for (size_t r = 0; r < member.results.size(); ++r) {
      const auto& all = readers[member.tensors[r].node];
      if (all.size() > 1)
        for (size_t m : all) shares[m] = true;
    }
  }
  for (size_t m = 0; m < members.size(); ++m)
    if (shares[m]) members[m].usable = false;
}

}  // namespace updates_detail

std::vector<UpdateGroup> find_updates(const Trace& trace, const Plan& plan) {
  using namespace updates_detail;
  std::map<uint32_t, uint32_t> leaf_of;  // by node: the leaf whose memory its result takes
  for (size_t i = 0; i < plan.leaves.size(); ++i)
    if (plan.aliases[i] >= 0)
      leaf_of[plan.outputs[static_cast<size_t>(plan.aliases[i])].node] = plan.leaves[i];
  std::vector<Member> members = find_members(trace, plan);
  for (Member& member : members) member.usable = member.usable && results_first(member, leaf_of);
  drop_those_that_share(members);

  std::map<stablehlo::Dims, std::vector<const Member*>> by_code;
  std::vector<stablehlo::Dims> order;
  for (const Member& member : members) {
    if (!member.usable) continue;
    const stablehlo::Dims words = code_of(member).to_words();
    if (by_code[words].empty()) order.push_back(words);
    by_code[words].push_back(&member);
  }
  std::vector<UpdateGroup> groups;
  for (const stablehlo::Dims& words : order) {
    const auto& alike = by_code[words];
    int64_t elements = 0;
    for (const Member* member : alike) elements += member->type->type.numel();
    if (alike.size() < kWorthMembers && elements < kWorthElements) continue;
    UpdateGroup& group = groups.emplace_back();
    group.code = code_of(*alike.front());
    for (const Member* member : alike) group.members.push_back(*member);
  }
  return groups;
}

std::vector<bool> nodes_of(const std::vector<UpdateGroup>& groups, size_t nodes) {
  std::vector<bool> found(nodes, false);
  for (const UpdateGroup& group : groups)
    for (const Update& member : group.members)
      for (uint32_t node : member.nodes) found[node] = true;
  return found;
}

void lower_updates(stablehlo::Builder& b, const UpdateGroup& group,
                   const std::function<stablehlo::Value(Ref)>& value_of, stablehlo::Value numbers,
                   std::vector<stablehlo::Values>& values) {
  std::vector<const Update*> members;
  for (const Update& member : group.members)
    if (!member.lowered) members.push_back(&member);
  if (members.empty()) return;
  const auto results = static_cast<int64_t>(group.code.results.size());
  stablehlo::Values operands;
  std::vector<stablehlo::Type> types;
  stablehlo::Dims positions;
  const auto add = [&](auto begin, auto end) {
    for (; begin != end; ++begin) operands.push_back(value_of(*begin));
  };
  for (const Update* member : members) {
    add(member->tensors.begin(), member->tensors.begin() + results);
    positions.insert(positions.end(), member->numbers.begin(), member->numbers.end());
  }
  for (const stablehlo::Value operand : operands) types.push_back(operand.type());
  for (const Update* member : members) add(member->tensors.begin() + results, member->tensors.end());
  for (const Update* member : members) add(member->units.begin(), member->units.end());
  if (group.code.numbers > 0) operands.push_back(numbers);
  b.set_location(base::str("update of ", members.size(), members.size() == 1 ? " tensor" : " tensors"));
  const stablehlo::Values updated = b.custom_call(stablehlo::UpdateCode::kTarget, operands, types,
                                                  {{"code", group.code.to_words()}, {"numbers", positions}},
                                                  {.in_place = true, .pure = true});
  size_t next = 0;
  for (const Update* member : members)
    for (uint32_t node : member->results) values[node] = {updated[next++]};
}

}  // namespace sluice::device
