#include "sluice/device/program/trace.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "sluice/base/check.h"
#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/device/exact.h"
#include "sluice/device/offsets.h"
#include "sluice/device/report/call_places.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/runtime.h"

namespace sluice::device {

Trace& Trace::get() {
  static auto* trace = new Trace();  // outlives every static tensor
  return *trace;
}

uint32_t Trace::add(const Instance& instance, c10::ArrayRef<Operand> operands,
                    c10::ArrayRef<Number> scalars) {
  return add_node(instance, passes_.operation(layer), operands, scalars);
}

uint32_t Trace::add_part(const Instance& instance, c10::ArrayRef<Operand> operands,
                         c10::ArrayRef<Number> scalars) {
  return add_node(instance, passes_.part(layer), operands, scalars);
}

uint32_t Trace::add_node(const Instance& instance, const RecordedIn& place, c10::ArrayRef<Operand> operands,
                         c10::ArrayRef<Number> scalars) {
  if (nodes.empty()) note_first_record();
  follow(instance);
  if (place.layer == 0) note_call_place(instance.id);
  // The node is filled in place: copying it would wait for the latest writes to memory.
  Node& node = nodes.emplace_back();
  node.instance = &instance;
  node.first_input = static_cast<uint32_t>(inputs.size());
  node.first_number = static_cast<uint32_t>(numbers.size());
  node.name = place.layer;
  node.sameness = Sameness::kGlobal;
  node.pass = place.pass;
  for (const Operand& operand : operands) {
    inputs.push_back(operand.ref);
    if (operand.sameness <= node.sameness) continue;
    node.sameness = operand.sameness;
    node.origin = origin(operand.ref);
    if (node.origin.row == nullptr) node.origin = {instance.row, node.name};
  }
  numbers.insert(numbers.end(), scalars.begin(), scalars.end());
  return static_cast<uint32_t>(nodes.size() - 1);
}

void Trace::follow(const Instance& instance) {
  constexpr size_t kSkipped = 4;  // the number of earlier operations that may be missing in this trace
  const size_t end = std::min(next_ + kSkipped, before_.size());
  for (size_t i = next_; i < end; ++i) {
    if (before_[i] != &instance) continue;
    next_ = i + 1;
    return fetch_expected();
  }
}

void Trace::fetch_expected() const {
  constexpr size_t kLine = 64, kLines = 5;  // a cache line's bytes; the lines of an instance with a key of
                                            // usual length
  const auto* const begin = reinterpret_cast<const char*>(expected());
  for (size_t i = 0; begin != nullptr && i < kLines; ++i) __builtin_prefetch(begin + i * kLine);
}

void Trace::set_sameness(uint32_t number, Sameness sameness) {
  Node& node = nodes[number];
  if (sameness > node.sameness) node.origin = {node.instance->row, node.name};
  node.sameness = sameness;
}

std::string since(const Origin& origin) {
  if (origin.row == nullptr) return "it came from the host so: a batch";
  return base::str("different since ", origin.row->name,
                   origin.layer != 0 ? base::str(" in layer ", Names::name(origin.layer)) : std::string());
}

Operand Trace::leaf(const DataPtr& data) {
  if (data->leaf_trace != number) {
    check_opening(*data);
    data->leaf_trace = number;
    data->leaf = static_cast<uint32_t>(leaves.size());
    leaves.push_back(data);
  }
  return {{data->leaf, Ref::kLeaf}, data->type, data->sameness};
}

void Trace::link(LazyStorage& storage) {
  storage.previous = last_;
  storage.next = nullptr;
  (last_ ? last_->next : first_) = &storage;
  last_ = &storage;
}

void Trace::unlink(LazyStorage& storage) {
  (storage.previous ? storage.previous->next : first_) = storage.next;
  (storage.next ? storage.next->previous : last_) = storage.previous;
  storage.previous = storage.next = nullptr;
}

void Trace::clear() {
  SLUICE_CHECK(first_ == nullptr, "a trace was cleared while a storage waits for its value");
  // A few operations for a host read between two steps say nothing about the next step.
  constexpr size_t kFew = 8;
  if (nodes.size() > kFew || nodes.size() >= before_.size()) {
    before_.clear();
    for (const Node& node : nodes) before_.push_back(node.instance);
  }
  next_ = 0;
  nodes.clear();
  inputs.clear();
  numbers.clear();
  ++number;
  owner = {};
  layer = 0;
  passes_.cut();
  std::vector<DataPtr> released;
  released.swap(leaves);
  leaves.reserve(released.size());
}

namespace {

// Returns the key of a call of one of the device's own rows. `kind` and `ints` are its constants.
InstanceKey own_key(const char* row, uint64_t kind, c10::ArrayRef<Operand> operands,
                    c10::ArrayRef<int64_t> ints) {
  InstanceKey key;
  key.push_back(reinterpret_cast<uintptr_t>(row));
  key.push_back(kind);
  for (const Operand& operand : operands) key.push_back(reinterpret_cast<uintptr_t>(operand.type));
  for (int64_t i : ints) key.push_back(static_cast<uint64_t>(i));
  return key;
}

// Returns the instance of such a call; `fill` gives a new instance its arguments.
template <typename Fill>
const Instance& own_instance(const char* row, const std::vector<std::string>& names, uint64_t kind,
                             c10::ArrayRef<Operand> operands, c10::ArrayRef<int64_t> ints, const Fill& fill) {
  c10::SmallVector<TypeRef, 2> types;
  for (const Operand& operand : operands) types.push_back(operand.type);
  const bool exact = records_exactly();
  const auto fill_all = [&](Instance& made) {
    made.exact = exact;
    made.row = ops::find_row(row);
    SLUICE_CHECK(made.row != nullptr, row);
    made.names = &names;
    made.args.resize(names.size());
    fill(made.args);
  };
  const Instance& instance = find_instance(own_key(row, kind * 2 + (exact ? 1 : 0), operands, ints), types,
                                           fill_all, Trace::get().expected());
  if (!instance.unimplemented.empty())
    throw_error(Code::kUnimplemented, base::str(row, ": ", instance.unimplemented));
  return instance;
}

// A call with a run-time offset needs an instance of its own.
uint64_t internal_kind(stablehlo::DType dtype, bool offset) {
  return static_cast<uint64_t>(dtype) * 2 + (offset ? 1 : 0);
}

}  // namespace

std::vector<Operand> record_list(const char* row, c10::ArrayRef<Operand> operands,
                                 c10::ArrayRef<int64_t> ints, Sameness sameness) {
  static const std::vector<std::string> names = {"tensors", "ints"};
  const Instance& instance =
      own_instance(row, names, operands.size(), operands, ints, [&](std::vector<ops::Arg>& args) {
        args[0].kind = ops::Arg::Kind::kTensors;
        args[0].values.resize(operands.size());
        args[0].ints.assign(operands.size(), 1);
        args[1].kind = ops::Arg::Kind::kInts;
        args[1].ints = ints.vec();
      });
  Trace& trace = Trace::get();
  const uint32_t node = trace.add(instance, operands, {});
  trace.set_sameness(node, sameness);
  std::vector<Operand> results;
  for (size_t i = 0; i < instance.results.size(); ++i)
    results.push_back(trace.result(node, static_cast<uint16_t>(i)));
  return results;
}

namespace {

const Instance& internal_instance(const char* row, c10::ArrayRef<Operand> operands,
                                  c10::ArrayRef<int64_t> ints, stablehlo::DType dtype, bool offset) {
  static const std::vector<std::string> names = {"self", "other", "ints", "dtype", "offset"};
  return own_instance(row, names, internal_kind(dtype, offset), operands, ints,
                      [&](std::vector<ops::Arg>& args) {
                        for (size_t i = 0; i < operands.size(); ++i) args[i].kind = ops::Arg::Kind::kTensor;
                        args[2].kind = ops::Arg::Kind::kInts;
                        args[2].ints = ints.vec();
                        args[3].kind = ops::Arg::Kind::kDType;
                        args[3].dtype = dtype;
                        if (!offset) return;
                        args[4].kind = ops::Arg::Kind::kScalar;
                        args[4].category = ops::Category::kInt;
                      });
}

}  // namespace

const Instance& with_run_time_offset(const char* row, const Instance& constant) {
  c10::SmallVector<Operand, 2> operands;
  for (const TypeRef type : constant.operands) operands.push_back({{}, type, Sameness::kGlobal});
  std::vector<int64_t> ints = constant.args[2].ints;
  ints.back() = 0;
  return internal_instance(row, operands, ints, stablehlo::DType::kPred, true);
}

Operand record_internal(const char* row, c10::ArrayRef<Operand> operands, c10::ArrayRef<int64_t> ints,
                        stablehlo::DType dtype, std::optional<int64_t> offset) {
  const Instance& instance = internal_instance(row, operands, ints, dtype, offset.has_value());
  Trace& trace = Trace::get();
  if (!offset) return trace.result(trace.add_part(instance, operands, {}), 0);
  const Number number{static_cast<double>(*offset), *offset};
  return trace.result(trace.add_part(instance, operands, number), 0);
}

const Instance* known_internal(const char* row, c10::ArrayRef<Operand> operands,
                               c10::ArrayRef<int64_t> ints) {
  return known_instance(own_key(row, internal_kind(stablehlo::DType::kPred, false), operands, ints),
                        Trace::get().expected());
}

namespace {
struct NameTable {
  std::deque<std::string> names = std::deque<std::string>(1);
  // Views of the names, which do not move when more are added.
  std::unordered_map<std::string_view, uint32_t> numbers = {{names[0], 0}};
};
NameTable& all_names() {
  static auto* table = new NameTable();
  return *table;
}
}  // namespace

uint32_t Names::add(const std::string& name) {
  NameTable& table = all_names();
  if (const auto known = table.numbers.find(name); known != table.numbers.end()) return known->second;
  const auto number = static_cast<uint32_t>(table.names.size());
  table.numbers.emplace(table.names.emplace_back(name), number);
  return number;
}

const std::string& Names::name(uint32_t number) { return all_names().names[number]; }

}  // namespace sluice::device
