#include "sluice/device/trace.h"

#include <deque>

#include "sluice/base/check.h"
#include "sluice/device/metrics.h"

namespace sluice::device {

Trace& Trace::get() {
  static auto* trace = new Trace();  // outlives every static tensor
  return *trace;
}

uint32_t Trace::add(const Instance& instance, c10::ArrayRef<Operand> operands,
                    c10::ArrayRef<Number> scalars) {
  if (nodes.empty()) note_first_record();
  Node node{&instance, static_cast<uint32_t>(inputs.size()), static_cast<uint32_t>(numbers.size()), layer,
            Sameness::kGlobal};
  for (const Operand& operand : operands) {
    inputs.push_back(operand.ref);
    node.sameness = weakest(node.sameness, operand.sameness);
  }
  numbers.insert(numbers.end(), scalars.begin(), scalars.end());
  nodes.push_back(node);
  return static_cast<uint32_t>(nodes.size() - 1);
}

Operand Trace::leaf(const DataPtr& data) {
  if (data->leaf_trace != number) {
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
  nodes.clear();
  inputs.clear();
  numbers.clear();
  ++number;
  owner = {};
  std::vector<DataPtr> released;
  released.swap(leaves);
  leaves.reserve(released.size());
}

Operand record_internal(const char* row, c10::ArrayRef<Operand> operands, c10::ArrayRef<int64_t> ints,
                        stablehlo::DType dtype) {
  static const std::vector<std::string> names = {"self", "other", "ints", "dtype"};
  InstanceKey key;
  key.push_back(reinterpret_cast<uintptr_t>(row));
  key.push_back(static_cast<uint64_t>(dtype));
  c10::SmallVector<TypeRef, 2> types;
  for (const Operand& operand : operands) {
    key.push_back(reinterpret_cast<uintptr_t>(operand.type));
    types.push_back(operand.type);
  }
  for (int64_t i : ints) key.push_back(static_cast<uint64_t>(i));
  const Instance& instance = find_instance(key, types, [&](Instance& made) {
    made.row = ops::find_row(row);
    SLUICE_CHECK(made.row != nullptr, row);
    made.names = &names;
    made.args.resize(4);
    for (size_t i = 0; i < operands.size(); ++i) made.args[i].kind = ops::Arg::Kind::kTensor;
    made.args[2].kind = ops::Arg::Kind::kInts;
    made.args[2].ints = ints.vec();
    made.args[3].kind = ops::Arg::Kind::kDType;
    made.args[3].dtype = dtype;
  });
  Trace& trace = Trace::get();
  return trace.result(trace.add(instance, operands, {}), 0);
}

namespace {
std::deque<std::string>& all_names() {
  static auto* names = new std::deque<std::string>(1);
  return *names;
}
}  // namespace

uint32_t Names::add(const std::string& name) {
  auto& names = all_names();
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<uint32_t>(i);
  }
  names.push_back(name);
  return static_cast<uint32_t>(names.size() - 1);
}

const std::string& Names::name(uint32_t number) { return all_names()[number]; }

}  // namespace sluice::device
