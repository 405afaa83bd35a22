#include "sluice/device/program/lower.h"

#include <algorithm>
#include <unordered_map>

#include "sluice/base/check.h"
#include "sluice/base/formats/hash.h"
#include "sluice/device/open.h"
#include "sluice/device/report/call_places.h"
#include "sluice/device/sharding/layouts.h"
#include "sluice/patterns/patterns.h"
#include "sluice/profile/kernel_calls.h"
#include "sluice/stablehlo/location.h"
#include "sluice/stablehlo/partitions.h"

namespace sluice::device {
namespace {

constexpr uint32_t kDead = 0xffffffff;
constexpr uint64_t kLeafMark = uint64_t{1} << 63;

// Makes the distinct values that pending storages hold the outputs; each storage gets the number of its
// value.
void collect_outputs(const Trace& trace, Plan& plan, std::vector<uint32_t>& output_of) {
  std::vector<int32_t> first(trace.nodes.size(), -1);  // the last output found so far for each node
  std::vector<int32_t> chain;                          // for each output, the previous output of the same
                                                       // node
  for (LazyStorage* s = trace.first_pending(); s != nullptr; s = s->next) {
    int32_t found = first[s->ref.node];
    while (found >= 0 && plan.outputs[static_cast<size_t>(found)].output != s->ref.output)
      found = chain[static_cast<size_t>(found)];
    if (found < 0) {
      found = static_cast<int32_t>(plan.outputs.size());
      plan.outputs.push_back(s->ref);
      chain.push_back(first[s->ref.node]);
      first[s->ref.node] = found;
    }
    output_of.push_back(static_cast<uint32_t>(found));
  }
}

std::vector<bool> mark_live(const Trace& trace, const Plan& plan) {
  std::vector<bool> live(trace.nodes.size(), false);
  for (Ref output : plan.outputs) live[output.node] = true;
  for (size_t i = trace.nodes.size(); i-- > 0;) {
    if (!live[i]) continue;
    const Node& node = trace.nodes[i];
    for (size_t k = 0; k < node.instance->operands.size(); ++k) {
      const Ref input = trace.inputs[node.first_input + k];
      if (!input.leaf()) live[input.node] = true;
    }
  }
  return live;
}

// Lets a storage whose old data is a parameter give that memory to its new value, if the types are equal.
void pair_donations(const Trace& trace, const std::vector<uint32_t>& parameter_of,
                    const std::vector<uint32_t>& output_of, Plan& plan) {
  plan.aliases.assign(plan.leaves.size(), -1);
  std::vector<bool> taken(plan.outputs.size(), false);
  size_t i = 0;
  for (LazyStorage* s = trace.first_pending(); s != nullptr; s = s->next, ++i) {
    if (s->replaced_leaf == LazyStorage::kNoLeaf) continue;
    const uint32_t parameter = parameter_of[s->replaced_leaf];
    const uint32_t output = output_of[i];
    if (parameter == kDead || plan.aliases[parameter] >= 0 || taken[output]) continue;
    if (trace.leaves[s->replaced_leaf]->type != s->type) continue;
    if (!plan.layouts.empty() && trace.leaves[s->replaced_leaf]->layout != plan.layouts[output]) continue;
    plan.aliases[parameter] = static_cast<int32_t>(output);
    taken[output] = true;
  }
}

}  // namespace

Plan make_plan(const Trace& trace, const World& world, std::vector<uint32_t>& output_of) {
  Plan plan;
  if (world.needs_base()) plan.scalars[static_cast<size_t>(ScalarClass::kI64)] = 1;
  collect_outputs(trace, plan, output_of);
  const std::vector<bool> live = mark_live(trace, plan);
  std::vector<uint32_t> number_of(trace.nodes.size(), kDead);
  std::vector<uint32_t> parameter_of(trace.leaves.size(), kDead);
  plan.signature.reserve(trace.nodes.size() * 4);
  for (uint32_t i = 0; i < trace.nodes.size(); ++i) {
    if (!live[i]) continue;
    const Node& node = trace.nodes[i];
    number_of[i] = static_cast<uint32_t>(plan.nodes.size());
    plan.nodes.push_back(i);
    plan.signature.push_back(node.instance->id);
    for (size_t k = 0; k < node.instance->operands.size(); ++k) {
      const Ref input = trace.inputs[node.first_input + k];
      if (!input.leaf()) {
        plan.signature.push_back(uint64_t{number_of[input.node]} << 16 | input.output);
        continue;
      }
      if (parameter_of[input.node] == kDead) {
        parameter_of[input.node] = static_cast<uint32_t>(plan.leaves.size());
        plan.leaves.push_back(input.node);
      }
      plan.signature.push_back(kLeafMark | parameter_of[input.node]);
    }
    for (Slot slot : node.instance->slots) ++plan.scalars[static_cast<size_t>(slot.kind)];
  }
  if (world.mesh != nullptr) plan.layouts = layouts_of_outputs(trace, plan, *world.mesh, output_of);
  pair_donations(trace, parameter_of, output_of, plan);
  for (Ref output : plan.outputs)
    plan.signature.push_back(uint64_t{number_of[output.node]} << 16 | output.output);
  for (int32_t alias : plan.aliases) plan.signature.push_back(static_cast<uint64_t>(alias));
  if (world.mesh != nullptr) {
    const auto add = [&](LayoutRef layout) {
      plan.signature.push_back(layout == nullptr ? 0 : layout->hash);
    };
    for (uint32_t leaf : plan.leaves) add(trace.leaves[leaf]->layout);
    for (LayoutRef layout : plan.layouts) add(layout);
  }
  return plan;
}

namespace {

// Hands out the slots of one node while it is lowered.
class LoweredSlots : public ops::Slots {
 public:
  LoweredSlots(stablehlo::Builder& builder, const World& world, const stablehlo::Value* vectors,
               uint64_t program)
      : b_(builder), world_(world), vectors_(vectors) {
    site_.program = static_cast<int64_t>(program);
    if (world.needs_base()) next_[static_cast<size_t>(ScalarClass::kI64)] = 1;
  }

  void begin(const Instance& instance, uint32_t layer) {
    instance_ = &instance;
    layer_ = layer;
    for (size_t k = 0; k < kScalarClasses; ++k) base_[k] = next_[k];
    for (Slot slot : instance.slots) ++next_[static_cast<size_t>(slot.kind)];
  }

  stablehlo::Value scalar(size_t index, stablehlo::DType dtype) override {
    stablehlo::Value value = load({static_cast<uint16_t>(index), scalar_class(dtype)});
    if (dtype == stablehlo::DType::kPred)
      return b_.compare(value, b_.splat(0, value.type()), stablehlo::Compare::kNe);
    return b_.convert(value, dtype);
  }

  // Returns the call's key and, for each replica, a counter of its own (see ops/random.h).
  stablehlo::Value random_state() override {
    using stablehlo::DType;
    const stablehlo::Type one{DType::kU64, {1}};
    stablehlo::Value key = b_.reshape(b_.convert(load({Slot::kRandom, ScalarClass::kI64}), DType::kU64), {1});
    stablehlo::Value counter = b_.splat(0, one);
    if (!instance_->shared_random && world_.replicas() > 1) {
      counter = b_.reshape(b_.convert(replica_id(), DType::kU64), {1});
      counter = b_.shift_left(counter, b_.splat(40, one));
    }
    const stablehlo::Value parts[] = {key, counter};
    return b_.concatenate(parts, 0);
  }

  ops::Replicas replicas() const override { return world_.for_rows(); }

  stablehlo::Value replica_id() override {
    using stablehlo::DType;
    const stablehlo::Value local = b_.convert(b_.replica_id(), DType::kS32);
    if (!world_.needs_base()) return local;
    const stablehlo::Value base =
        b_.reshape(b_.slice(vectors_[static_cast<size_t>(ScalarClass::kI64)], {0}, {1}), {});
    return b_.add(local, b_.convert(base, DType::kS32));
  }

  Site& next_site() override {
    ++site_.number;
    return site_;
  }

  bool over_replicas() const override { return instance_->over_replicas; }

  void expect(const ops::Expectation& expectation) override {
    if (world_.check_values) add(expectation);
  }

  // Expects that this value has no NaN, if the world looks for the first NaN. A complex number is NaN if a
  // part is.
  void expect_no_nan(std::string_view what, stablehlo::Value value) {
    if (!world_.detect_anomaly ||
        !(stablehlo::is_float(value.dtype()) || stablehlo::is_complex(value.dtype())))
      return;
    add({.argument = what, .values = value, .rule = ops::Expectation::Rule::kNoNaN});
  }

  std::vector<ops::Expectation> expectations;
  std::vector<ValueCheck> checks;  // the expectations, described for messages

 private:
  void add(const ops::Expectation& expectation) {
    // A gradient checks the same positions as its forward pass.
    std::vector<size_t>& of_value = checked_[expectation.values.id()];
    for (size_t known : of_value)
      if (expectations[known].implies(expectation)) return;
    // What a weaker one implies, this one implies: the list stays short.
    std::erase_if(of_value, [&](size_t known) { return expectation.implies(expectations[known]); });
    of_value.push_back(expectations.size());
    expectations.push_back(expectation);
    const auto& e = expectation;
    checks.push_back({instance_ == nullptr ? "the program" : std::string(instance_->row->name),
                      std::string(e.argument), layer_, e.low, e.high, e.except, e.rule});
  }

  stablehlo::Value load(Slot slot) {
    int64_t position[kScalarClasses];
    for (size_t k = 0; k < kScalarClasses; ++k) position[k] = base_[k];
    for (Slot other : instance_->slots) {
      const auto kind = static_cast<size_t>(other.kind);
      if (other == slot)
        return b_.reshape(b_.slice(vectors_[kind], {position[kind]}, {position[kind] + 1}), {});
      ++position[kind];
    }
    SLUICE_CHECK(false, instance_->row->name,
                 " asked for a scalar while lowered that it did not ask for while inferred");
    return {};
  }

  stablehlo::Builder& b_;
  const World& world_;
  const stablehlo::Value* vectors_;
  const Instance* instance_ = nullptr;
  uint32_t layer_ = 0;
  int64_t base_[kScalarClasses] = {};
  int64_t next_[kScalarClasses] = {};
  std::unordered_map<int32_t, std::vector<size_t>> checked_;  // by the value's number; indices of
                                                              // `expectations`
  Site site_;
};

// Returns the number by which calls of kernels know a node in a profile: the same in every process.
int64_t name_node(const Node& node, uint64_t canonical, uint64_t place, const std::string& location) {
  const auto number = static_cast<int64_t>(base::mix_word(canonical, place) >> 1 | 1);
  profile::RecordedName name{location};
  if (node.name == 0) name.place = [id = node.instance->id] { return call_place(id); };
  profile::name_recorded(number, std::move(name));
  return number;
}

// Returns the program laid out over the mesh. The vectors of run-time numbers and what the checks of values
// found are whole on every device.
std::string laid_out(const std::string& text, const Trace& trace, const Plan& plan, const Mesh& mesh,
                     size_t parameters, size_t results) {
  stablehlo::Partitions partitions{mesh, {}, {}};
  for (uint32_t leaf : plan.leaves) {
    const Data& data = *trace.leaves[leaf];
    partitions.arguments.push_back(whole_or(data.layout, data.type->type.dims.size()));
  }
  partitions.arguments.resize(parameters, Layout::replicated(1));
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const Ref output = plan.outputs[i];
    const TypeRef type = trace.nodes[output.node].instance->results[output.output];
    partitions.results.push_back(whole_or(plan.layouts[i], type->type.dims.size()));
  }
  partitions.results.resize(results, Layout::replicated(1));
  return stablehlo::with_layouts(text, partitions);
}

// The batch lies over the axes data and fsdp, and what a tensor axis divides are heads.
ops::attention::Groups attention_groups(const World& world) {
  ops::attention::Groups groups{world.attention_bytes};
  if (world.mesh == nullptr) return groups;
  groups.batch_devices = world.mesh->size("data") * world.mesh->size("fsdp");
  groups.head_devices = world.mesh->size("tensor");
  return groups;
}

// Adds the argument for a leaf and returns the leaf's value, without the argument's padding.
stablehlo::Value argument_of(stablehlo::Builder& b, const Data& data, const Mesh* mesh) {
  const stablehlo::Type& type = data.type->type;
  if (mesh == nullptr || data.layout == nullptr) return b.parameter(type);
  const stablehlo::Value argument = b.parameter(padded_type(*mesh, type, data.layout));
  if (argument.dims() == type.dims) return argument;
  return b.slice(argument, stablehlo::Dims(type.dims.size(), 0), type.dims);
}

// Returns the numbers of the arguments that argument_of() cuts.
std::vector<size_t> padded_arguments(const Trace& trace, const Plan& plan, const Mesh* mesh) {
  std::vector<size_t> numbers;
  if (mesh == nullptr) return numbers;
  for (size_t i = 0; i < plan.leaves.size(); ++i) {
    const Data& data = *trace.leaves[plan.leaves[i]];
    if (padded_type(*mesh, data.type->type, data.layout) != data.type->type) numbers.push_back(i);
  }
  return numbers;
}

// Pads a result with zeros to what its layout needs.
stablehlo::Value padded(stablehlo::Builder& b, stablehlo::Value value, LayoutRef layout, const Mesh& mesh) {
  const stablehlo::Type type = padded_type(mesh, value.type(), layout);
  if (type == value.type()) return value;
  stablehlo::Dims low(type.dims.size(), 0), high = type.dims;
  for (size_t i = 0; i < high.size(); ++i) high[i] -= value.dims()[i];
  return b.pad(value, b.splat(0, stablehlo::Type{type.dtype, {}}), low, high);
}

patterns::LoopRule loop_rule(const World& world) {
  if (!world.loops) return {};
  return world.layer_loops ? patterns::kLayerLoops : patterns::kLongLoops;
}

}  // namespace

Lowered lower(const Trace& trace, const Plan& plan, const World& world, bool donate) {
  stablehlo::Builder b;
  b.set_explicit_nan(world.explicit_nan);
  b.set_precision(world.precision);
  std::vector<stablehlo::Donation> donations;
  std::vector<stablehlo::Value> leaf_values(trace.leaves.size());
  for (size_t i = 0; i < plan.leaves.size(); ++i) {
    leaf_values[plan.leaves[i]] = argument_of(b, *trace.leaves[plan.leaves[i]], world.mesh.get());
    const bool aliased = donate && plan.aliases[i] >= 0;
    donations.push_back({aliased ? stablehlo::Donation::Kind::kAliasOutput : stablehlo::Donation::Kind::kNone,
                         aliased ? plan.aliases[i] : 0});
  }
  stablehlo::Value vectors[kScalarClasses];
  for (size_t k = 0; k < kScalarClasses; ++k) {
    if (plan.scalars[k] == 0) continue;
    vectors[k] = b.parameter({kScalarTypes[k], {static_cast<int64_t>(plan.scalars[k])}});
    donations.push_back({});
  }

  const uint64_t canonical = canonical_hash(trace, plan);
  LoweredSlots slots(b, world, vectors, canonical);
  for (uint32_t leaf : plan.leaves) slots.expect_no_nan("an input", leaf_values[leaf]);
  std::vector<stablehlo::Values> results(trace.nodes.size());
  auto value_of = [&](Ref ref) { return ref.leaf() ? leaf_values[ref.node] : results[ref.node][ref.output]; };
  uint64_t place = 0;  // the place of the node in the plan
  for (uint32_t number : plan.nodes) {
    const Node& node = trace.nodes[number];
    const Instance& instance = *node.instance;
    slots.begin(instance, node.name);
    const std::string location =
        stablehlo::location_text(Names::name(node.name), node.pass, instance.row->name);
    b.set_location(location, world.kernels != nullptr ? name_node(node, canonical, place, location) : 0);
    ++place;
    std::vector<ops::Arg> args = instance.args;
    size_t next = node.first_input;
    for (ops::Arg& arg : args) {
      if (arg.kind == ops::Arg::Kind::kTensor && !arg.from_slot) arg.value = value_of(trace.inputs[next++]);
      for (size_t k = 0; k < arg.values.size(); ++k) {
        if (arg.ints[k]) arg.values[k] = value_of(trace.inputs[next++]);
      }
    }
    ops::Emit emit(b, instance.row->name, *instance.names, args, slots);
    results[number] = instance.row->emit(emit);
    for (stablehlo::Value& result : results[number]) {
      if (!result) continue;
      if (instance.exact) result = b.optimization_barrier(result);
      slots.expect_no_nan("its result", result);
    }
  }
  std::vector<stablehlo::Value> outputs;
  for (Ref ref : plan.outputs) outputs.push_back(value_of(ref));
  if (world.mesh != nullptr) {
    b.set_location("padding");
    for (size_t i = 0; i < outputs.size(); ++i)
      outputs[i] = padded(b, outputs[i], plan.layouts[i], *world.mesh);
  }
  if (!slots.checks.empty()) {
    b.set_location("checks of values");
    outputs.push_back(emit_value_checks(b, slots.expectations));
  }
  stablehlo::ProgramFlops flops;
  outputs = patterns::rewrite(b, std::move(outputs), donations, world.kernels, &flops, loop_rule(world),
                              attention_groups(world), padded_arguments(trace, plan, world.mesh.get()),
                              {world.mesh.get(), gather_bytes()});
  std::string text =
      b.finish(outputs, donations, world.spans_processes ? world.replicas() : world.local_replicas, "sluice");
  if (world.mesh != nullptr)
    text = laid_out(text, trace, plan, *world.mesh, donations.size(), outputs.size());
  return {std::move(text), std::move(slots.checks), flops.all, stablehlo::layer_works(b, flops)};
}

uint64_t canonical_hash(const Trace& trace, const Plan& plan) {
  uint64_t hash = plan.nodes.size();
  auto mix = [&hash](uint64_t word) { hash = base::mix_word(hash, word); };
  // The signature holds no addresses, except in the instances' ids.
  for (uint32_t node : plan.nodes) mix(trace.nodes[node].instance->canonical);
  size_t next = 0;
  for (uint32_t node : plan.nodes) {
    ++next;  // the instance's id
    for (size_t k = 0; k < trace.nodes[node].instance->operands.size(); ++k) mix(plan.signature[next++]);
  }
  for (; next < plan.signature.size(); ++next) mix(plan.signature[next]);
  return hash;
}

void gather_scalars(const Trace& trace, const Plan& plan, const World& world, Scalars& scalars) {
  if (world.needs_base()) scalars.i64.push_back(world.first_replica());
  for (uint32_t number : plan.nodes) {
    const Node& node = trace.nodes[number];
    const auto& slots = node.instance->slots;
    for (size_t i = 0; i < slots.size(); ++i) {
      const Number& value = trace.numbers[node.first_number + i];
      switch (slots[i].kind) {
        case ScalarClass::kF32:
          scalars.f32.push_back(static_cast<float>(value.real));
          break;
        case ScalarClass::kI64:
          scalars.i64.push_back(value.integer);
          break;
        case ScalarClass::kF64:
          scalars.f64.push_back(value.real);
          break;
      }
    }
  }
}

}  // namespace sluice::device
