// An operation with everything that its program text depends on: row, constants and the types of its
// operands. Equal calls share one instance, so recording infers types once, and a trace's signature is a list
// of numbers.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/device/types.h"
#include "sluice/ops/row.h"

namespace sluice::device {

// The types of the vectors that carry run-time scalars.
enum class ScalarClass : uint8_t { kF32, kI64, kF64 };
constexpr size_t kScalarClasses = 3;
// The element type of each class.
constexpr stablehlo::DType kScalarTypes[kScalarClasses] = {stablehlo::DType::kF32, stablehlo::DType::kS64,
                                                           stablehlo::DType::kF64};
ScalarClass scalar_class(stablehlo::DType dtype);

struct Slot {
  uint16_t argument;  // the argument whose number it is; kRandom: the call's random key
  ScalarClass kind;
  static constexpr uint16_t kRandom = 0xffff;
  bool operator==(const Slot&) const = default;
};

// The words that identify an instance for a lookup.
using InstanceKey = c10::SmallVector<uint64_t, 48>;

// An instance. The members that each call looks at come first, next to each other.
struct Instance {
  const ops::Row* row = nullptr;
  std::vector<TypeRef> results;  // nullptr: undefined
  std::vector<Slot> slots;       // in the order in which they are first requested
  uint32_t id = 0;
  bool shared_random = false;  // random numbers are the same on all replicas
  bool over_replicas = false;  // statistics are over all replicas' batches
  bool exact = false;          // no compiler may compute its results together with its neighbours'
  // The reason why the row cannot do this call, which then runs on the CPU; empty if it can.
  std::string unimplemented;
  std::vector<TypeRef> operands;
  InstanceKey key;
  const std::vector<std::string>* names = nullptr;  // the names of the arguments
  // The arguments with their constants. Lowering puts the values in: operands in order, and run-time scalars
  // for the tensor arguments that are `from_slot`.
  std::vector<ops::Arg> args;
  // A hash that identifies the instance in every process: the row, its constants and types. Ids and addresses
  // differ between processes.
  uint64_t canonical = 0;
};

// Finds the instance of a key, or makes it with `fill` (row, names and args; operands from `operands`) and
// infers its results. `expected`, which may be null, is tried first. The caller holds the trace's lock.
// Throws sluice::Error if the operands do not fit the operation.
template <typename Fill>
const Instance& find_instance(const InstanceKey& key, c10::ArrayRef<TypeRef> operands, const Fill& fill,
                              const Instance* expected = nullptr);
// Returns the instance of a key, or null if it does not exist yet.
const Instance* known_instance(const InstanceKey& key, const Instance* expected);

// Returns "aten::add(tensor<3xf32>, tensor<3xf32>, 1)": the same text in every process.
std::string describe(const Instance& instance);
// Describes the instance with this Instance::id; "another operation" for one that was freed.
std::string describe_instance(uint32_t id);

// Makes later calls create new instances, because results of collectives depend on the number of replicas.
// Existing instances stay as they are.
void forget_instances();
// Frees all instances except these, whose ids may be in any order. No trace may hold a freed instance.
void keep_instances(const std::vector<uint32_t>& ids);
// Returns the number of instances.
size_t instances_alive();

// Returns the instance with this Instance::id; null for one that was freed.
const Instance* instance_by_id(uint32_t id);

namespace detail {
const Instance& add(Instance instance);
}  // namespace detail

template <typename Fill>
const Instance& find_instance(const InstanceKey& key, c10::ArrayRef<TypeRef> operands, const Fill& fill,
                              const Instance* expected) {
  if (const Instance* found = known_instance(key, expected)) return *found;
  Instance instance;
  instance.key = key;
  instance.operands = operands.vec();
  fill(instance);
  return detail::add(std::move(instance));
}

}  // namespace sluice::device
