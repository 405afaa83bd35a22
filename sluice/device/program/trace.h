// The trace: the operations that were recorded since the last cut.
//
// Nodes live in vectors that a cut clears, so that a trace of a million operations is freed without
// recursion. One lock guards the trace, all storages' values and the tables of instances and types;
// recording, cutting and LibTorch's backward threads take it. Waiting for the device happens outside of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sluice/device/libtorch/passes.h"
#include "sluice/device/program/instance.h"
#include "sluice/device/storage.h"
#include "sluice/device/value.h"

namespace sluice::device {

// A run-time scalar, in both forms.
struct Number {
  double real = 0;
  int64_t integer = 0;
};

struct Node {
  const Instance* instance;
  uint32_t first_input;   // the first entry in Trace::inputs; one for each of instance->operands
  uint32_t first_number;  // the first entry in Trace::numbers; one for each of instance->slots
  uint32_t name;          // the layer that the node belongs to, in Names
  Sameness sameness;
  stablehlo::Pass pass;
  Origin origin;  // where the results began to differ, unless they are global
};

class Trace {
 public:
  // Returns the process's trace.
  static Trace& get();
  // Recursive, because freeing a tensor while the lock is held frees its storage.
  std::recursive_mutex mutex;

  // Adds a node; numbers has one entry for each of the instance's slots.
  uint32_t add(const Instance& instance, c10::ArrayRef<Operand> operands, c10::ArrayRef<Number> numbers);
  // Adds a node that reads or writes a tensor for another operation, so that autograd does not know of it.
  uint32_t add_part(const Instance& instance, c10::ArrayRef<Operand> operands, c10::ArrayRef<Number> numbers);
  // Returns the instance of the next node if this trace continues like the one before; null if none is
  // expected.
  const Instance* expected() const { return next_ < before_.size() ? before_[next_] : nullptr; }
  void expect_nothing() { before_.clear(); }
  // Returns result `output` of a node.
  Operand result(uint32_t node, uint16_t output) const {
    const Node& n = nodes[node];
    return {{node, output}, n.instance->results[output], n.sameness};
  }
  // Sets the sameness of a node's results, independent of its operands' sameness.
  void set_sameness(uint32_t node, Sameness sameness);
  // Returns the origin of a value of this trace.
  Origin origin(Ref value) const {
    return value.leaf() ? leaves[value.node]->origin : nodes[value.node].origin;
  }
  // Returns the facts of a node's result.
  ValueFacts facts(Ref result) const {
    const Node& node = nodes[result.node];
    return {
        node.instance->results[result.output], node.sameness, node.origin, {node.instance->row, node.name}};
  }
  // Returns the data as an operand of this trace.
  Operand leaf(const DataPtr& data);

  // Adds the storage to the list of pending storages, or removes it.
  void link(LazyStorage& storage);
  void unlink(LazyStorage& storage);
  LazyStorage* first_pending() const { return first_; }

  // Empties the trace for the next one; pending storages must have their data by then.
  void clear();

  std::vector<Node> nodes;
  std::vector<Ref> inputs;
  std::vector<Number> numbers;
  std::vector<DataPtr> leaves;
  uint64_t number = 1;    // the number of this trace; never 0
  std::thread::id owner;  // the thread that records; none after a cut until it records again
  uint32_t layer = 0;     // the name of the parameter read last

 private:
  uint32_t add_node(const Instance& instance, const RecordedIn& place, c10::ArrayRef<Operand> operands,
                    c10::ArrayRef<Number> numbers);
  // Notes where the previous trace had this instance.
  void follow(const Instance& instance);
  // Prefetches the expected instance into the processor's cache while LibTorch prepares its operation.
  void fetch_expected() const;

  std::vector<const Instance*> before_;  // the instances of an earlier trace's nodes
  size_t next_ = 0;                      // index in before_
  LazyStorage* first_ = nullptr;
  LazyStorage* last_ = nullptr;
  Passes passes_;
};

using TraceLock = std::unique_lock<std::recursive_mutex>;
inline TraceLock lock_trace() { return TraceLock(Trace::get().mutex); }

// Records one of the device's own operations (rows of ops/view.cc): operands, then one list of integers, and
// the place where a part of a storage begins if that is a run-time number.
Operand record_internal(const char* row, c10::ArrayRef<Operand> operands, c10::ArrayRef<int64_t> ints,
                        stablehlo::DType dtype = stablehlo::DType::kPred,
                        std::optional<int64_t> offset = std::nullopt);
// Returns the instance of such a call without an offset and with kPred; null if it does not exist yet.
const Instance* known_internal(const char* row, c10::ArrayRef<Operand> operands, c10::ArrayRef<int64_t> ints);

// Records one of the device's rows over a list of tensors (rows of ops/collective.cc). There is one result
// for each operand, and each result has this sameness.
std::vector<Operand> record_list(const char* row, c10::ArrayRef<Operand> operands,
                                 c10::ArrayRef<int64_t> ints, Sameness sameness);

// Returns ", different since aten::mm (layer fc1.weight)", for messages about a value that is not global.
std::string since(const Origin& origin);

// Cuts: launches everything that is pending. The caller holds the lock. `what` names the boundary.
void cut(std::string_view what);
// The name of the cut that a host read makes.
constexpr std::string_view kHostRead = "host read";
// The name of the cut that gathers what the host reads from the devices of all processes.
constexpr std::string_view kGather = "host read of a value that lies over several processes";
inline bool is_host_read(std::string_view what) { return what == kHostRead || what == kGather; }
// The number of nodes at which the recorder cuts the trace by itself.
constexpr size_t kMaxPendingNodes = 100'000;

// Qualified names of parameters; number 0 is "".
class Names {
 public:
  static uint32_t add(const std::string& name);
  static const std::string& name(uint32_t number);
};

}  // namespace sluice::device
