#include "sluice/device/program/instance.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "sluice/base/check.h"
#include "sluice/base/formats/hash.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/runtime.h"

namespace sluice::device {

using stablehlo::DType;

ScalarClass scalar_class(DType dtype) {
  if (dtype == DType::kF64) return ScalarClass::kF64;
  return stablehlo::is_float(dtype) ? ScalarClass::kF32 : ScalarClass::kI64;
}

namespace {

// Notes which slots an emit function asks for.
class InferredSlots : public ops::Slots {
 public:
  InferredSlots(stablehlo::Builder& builder, Instance& instance)
      : builder_(builder), slots_(instance.slots), over_replicas_(instance.over_replicas) {}
  stablehlo::Value scalar(size_t index, DType dtype) override {
    note({static_cast<uint16_t>(index), scalar_class(dtype)});
    return builder_.parameter({dtype, {}});
  }
  stablehlo::Value random_state() override {
    note({Slot::kRandom, ScalarClass::kI64});
    return builder_.parameter({DType::kU64, {2}});
  }
  ops::Replicas replicas() const override { return runtime().world.for_rows(); }
  stablehlo::Value replica_id() override { return builder_.parameter({DType::kS32, {}}); }
  Site& next_site() override { return site_; }
  bool over_replicas() const override { return over_replicas_; }

 private:
  void note(Slot slot) {
    if (std::find(slots_.begin(), slots_.end(), slot) == slots_.end()) slots_.push_back(slot);
  }
  stablehlo::Builder& builder_;
  std::vector<Slot>& slots_;
  Site site_;
  bool over_replicas_;
};

// Returns whether an operand or an argument has such an element type.
bool any_dtype(const Instance& instance, bool (*is_such)(DType)) {
  return std::any_of(instance.operands.begin(), instance.operands.end(),
                     [&](TypeRef type) { return is_such(type->type.dtype); }) ||
         std::any_of(instance.args.begin(), instance.args.end(), [&](const ops::Arg& arg) {
           return arg.kind == ops::Arg::Kind::kDType && is_such(arg.dtype);
         });
}

bool has_complex_number(const Instance& instance) {
  return std::any_of(instance.args.begin(), instance.args.end(), [](const ops::Arg& arg) {
    return arg.kind == ops::Arg::Kind::kScalar && arg.category == ops::Category::kComplex;
  });
}

// Runs the emit function on parameters, only to learn the result types.
void infer(Instance& instance) {
  if ((any_dtype(instance, stablehlo::is_complex) || has_complex_number(instance)) &&
      !ops::takes_complex(*instance.row))
    throw_error(Code::kUnimplemented, "no complex numbers in its program");
  if (any_dtype(instance, stablehlo::is_float8) && !ops::takes_float8(*instance.row))
    throw_error(Code::kUnimplemented, "no float8 in its program");
  stablehlo::Builder builder;
  InferredSlots slots(builder, instance);
  std::vector<ops::Arg> args = instance.args;
  size_t operand = 0;
  auto next = [&] { return builder.parameter(instance.operands[operand++]->type); };
  for (ops::Arg& arg : args) {
    if (arg.kind == ops::Arg::Kind::kTensor && !arg.from_slot) arg.value = next();
    for (stablehlo::Value& value : arg.values) {
      if (arg.ints[static_cast<size_t>(&value - arg.values.data())]) value = next();
    }
  }
  ops::Emit emit(builder, instance.row->name, *instance.names, args, slots);
  for (const stablehlo::Value& value : instance.row->emit(emit)) {
    instance.results.push_back(value ? intern(value.type()) : nullptr);
  }
}

// Returns the error message with the operation's name and the types of its operands in front, unless it
// begins with the name already.
std::string of_call(const Instance& instance, std::string_view message) {
  if (base::starts_with(message, instance.row->name)) return std::string(message);
  for (const std::string_view inside : {"stablehlo.", "chlo."})
    if (base::starts_with(message, inside)) message.remove_prefix(message.find(": ") + 2);
  std::vector<std::string> operands;
  for (const TypeRef operand : instance.operands) operands.push_back(ops::in_words(operand->type));
  return base::str(instance.row->name, " of ", base::join(operands, ", "), ": ", message);
}

struct Table {
  std::vector<std::unique_ptr<Instance>> instances;  // by id; null: freed
  size_t alive = 0;
  std::unordered_multimap<uint64_t, uint32_t> by_hash;
};
Table& table() {
  static auto* table = new Table();
  return *table;
}

}  // namespace

std::string describe(const Instance& instance) {
  std::string text(instance.row->name);
  std::string_view separator = "(";
  auto add = [&](const auto& piece) {
    text += base::str(separator, piece);
    separator = ", ";
  };
  size_t operand = 0;
  for (const ops::Arg& arg : instance.args) {
    using Kind = ops::Arg::Kind;
    if (arg.kind == Kind::kTensor)
      add(arg.from_slot ? std::string("number") : instance.operands[operand++]->type.str());
    for (size_t i = 0; arg.kind == Kind::kTensors && i < arg.values.size(); ++i)
      add(arg.ints[i] ? instance.operands[operand++]->type.str() : std::string("none"));
    if (arg.kind == Kind::kScalar) add(arg.constant ? base::str(arg.number) : std::string("number"));
    if (arg.kind == Kind::kScalar && arg.category == ops::Category::kComplex)
      add(base::str(arg.imaginary, "i"));
    if (arg.kind == Kind::kInt || arg.kind == Kind::kBool || arg.kind == Kind::kInts)
      add(base::str("[", base::join(arg.ints, ","), "]"));
    if (arg.kind == Kind::kDoubles) add(base::str("[", base::join(arg.doubles, ","), "]"));
    if (arg.kind == Kind::kText) add(arg.text);
    if (arg.kind == Kind::kDType) add(stablehlo::dtype_name(arg.dtype));
  }
  if (instance.shared_random) add("shared");
  if (instance.over_replicas) add("over replicas");
  if (instance.exact) add("exact");
  return text + (separator == "(" ? "()" : ")");
}

void forget_instances() { table().by_hash.clear(); }

void keep_instances(const std::vector<uint32_t>& ids) {
  Table& all = table();
  std::vector<bool> kept(all.instances.size(), false);
  for (const uint32_t id : ids) kept[id] = true;
  std::erase_if(all.by_hash, [&](const auto& entry) { return !kept[entry.second]; });
  all.alive = 0;
  for (size_t id = 0; id < kept.size(); ++id) {
    if (!kept[id]) all.instances[id].reset();
    if (all.instances[id] != nullptr) ++all.alive;
  }
}

size_t instances_alive() { return table().alive; }

const Instance* instance_by_id(uint32_t id) { return table().instances[id].get(); }

std::string describe_instance(uint32_t id) {
  const Instance* const instance = instance_by_id(id);
  return instance == nullptr ? "another operation" : describe(*instance);
}

namespace {
uint64_t hash_key(const InstanceKey& key) { return base::hash_words(key.size(), key); }
}  // namespace

const Instance* known_instance(const InstanceKey& key, const Instance* expected) {
  if (expected != nullptr && expected->key == key) return expected;
  Table& all = table();
  auto [first, last] = all.by_hash.equal_range(hash_key(key));
  for (; first != last; ++first) {
    const Instance& found = *all.instances[first->second];
    if (found.key == key) return &found;
  }
  return nullptr;
}

namespace detail {

const Instance& add(Instance instance) {
  try {
    infer(instance);
  } catch (const Error& error) {
    if (error.code() != Code::kUnimplemented) throw_error(error.code(), of_call(instance, error.what()));
    instance.unimplemented = error.what();
  }
  instance.canonical = base::hash_text(describe(instance));
  Table& all = table();
  instance.id = static_cast<uint32_t>(all.instances.size());
  all.by_hash.emplace(hash_key(instance.key), instance.id);
  all.instances.push_back(std::make_unique<Instance>(std::move(instance)));
  ++all.alive;
  return *all.instances.back();
}

}  // namespace detail
}  // namespace sluice::device
