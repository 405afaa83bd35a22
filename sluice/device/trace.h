// The trace: what was recorded since the last cut.
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

#include "sluice/device/instance.h"
#include "sluice/device/libtorch/passes.h"
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
  uint32_t first_input;   // in Trace::inputs; as many as instance->operands
  uint32_t first_number;  // in Trace::numbers; as many as instance->slots
  uint32_t name;          // of the layer it belongs to, in Names
  Sameness sameness;
  stablehlo::Pass pass;
  Origin origin;  // where the results began to differ, unless they are global
};

class Trace {
 public:
  // The process's trace.
  static Trace& get();
  // Recursive, because freeing a tensor while the lock is held frees its storage.
  std::recursive_mutex mutex;

  // Adds a node; numbers has one entry for each of the instance's slots.
  uint32_t add(const Instance& instance, c10::ArrayRef<Operand> operands, c10::ArrayRef<Number> numbers);
  // The same for what reads or writes a tensor for another operation, so that autograd does not know of it.
  uint32_t add_part(const Instance& instance, c10::ArrayRef<Operand> operands, c10::ArrayRef<Number> numbers);
  // The instance of the next node if this trace goes as the one before it; null when nothing is expected.
  const Instance* expected() const { return next_ < before_.size() ? before_[next_] : nullptr; }
  void expect_nothing() { before_.clear(); }
  // Result `output` of a node.
  Operand result(uint32_t node, uint16_t output) const {
    const Node& n = nodes[node];
    return {{node, output}, n.instance->results[output], n.sameness};
  }
  // The results of a node are this much the same, whatever its operands are.
  void set_sameness(uint32_t node, Sameness sameness);
  // Of a value of this trace.
  Origin origin(Ref value) const {
    return value.leaf() ? leaves[value.node]->origin : nodes[value.node].origin;
  }
  // Of a node's result.
  ValueFacts facts(Ref result) const {
    const Node& node = nodes[result.node];
    return {
        node.instance->results[result.output], node.sameness, node.origin, {node.instance->row, node.name}};
  }
  // The data as an operand of this trace.
  Operand leaf(const DataPtr& data);

  // The list of pending storages.
  void link(LazyStorage& storage);
  void unlink(LazyStorage& storage);
  LazyStorage* first_pending() const { return first_; }

  // Empties the trace for the next; what was pending must have got its data.
  void clear();

  std::vector<Node> nodes;
  std::vector<Ref> inputs;
  std::vector<Number> numbers;
  std::vector<DataPtr> leaves;
  uint64_t number = 1;    // of this trace; never 0
  std::thread::id owner;  // the thread that records; none after a cut until it records again
  uint32_t layer = 0;     // the name of the parameter read last

 private:
  uint32_t add_node(const Instance& instance, const RecordedIn& place, c10::ArrayRef<Operand> operands,
                    c10::ArrayRef<Number> numbers);
  // Notes where in the trace before this one the instance was.
  void follow(const Instance& instance);
  // Asks the processor for the expected instance, while LibTorch comes to its operation.
  void fetch_expected() const;

  std::vector<const Instance*> before_;  // those of the nodes of a trace before
  size_t next_ = 0;                      // in before_
  LazyStorage* first_ = nullptr;
  LazyStorage* last_ = nullptr;
  Passes passes_;
};

using TraceLock = std::unique_lock<std::recursive_mutex>;
inline TraceLock lock_trace() { return TraceLock(Trace::get().mutex); }

// Records one of the device's own operations (rows of ops/view.cc): operands, then one list of integers, and
// where a part of a storage begins when that is a run-time number.
Operand record_internal(const char* row, c10::ArrayRef<Operand> operands, c10::ArrayRef<int64_t> ints,
                        stablehlo::DType dtype = stablehlo::DType::kPred,
                        std::optional<int64_t> offset = std::nullopt);
// The instance of such a call without an offset and with kPred, if there was one before.
const Instance* known_internal(const char* row, c10::ArrayRef<Operand> operands, c10::ArrayRef<int64_t> ints);

// Records one of the device's rows over a list of tensors (rows of ops/collective.cc). The results, one for
// each operand, are this much the same.
std::vector<Operand> record_list(const char* row, c10::ArrayRef<Operand> operands,
                                 c10::ArrayRef<int64_t> ints, Sameness sameness);

// ", different since aten::mm (layer fc1.weight)": for messages about a value that is not global.
std::string since(const Origin& origin);

// Cuts: launches everything that is pending. The caller holds the lock. `what` names the boundary.
void cut(std::string_view what);
// The name of the cut that a host read makes.
constexpr std::string_view kHostRead = "host read";
// A cut that the recorder makes by itself when the trace has grown beyond this many nodes.
constexpr size_t kMaxPendingNodes = 100'000;

// Qualified names of parameters; number 0 is "".
class Names {
 public:
  static uint32_t add(const std::string& name);
  static const std::string& name(uint32_t number);
};

}  // namespace sluice::device
