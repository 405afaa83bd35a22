#include "sluice/device/program/parts.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/text/join.h"
#include "sluice/device/capture/watch.h"
#include "sluice/device/program/program.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/program/value_checks.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/runtime.h"

namespace sluice::device {
namespace {

// Returns the nodes that a pending storage needs, in their order.
std::vector<uint32_t> live_nodes(const Trace& trace) {
  std::vector<bool> live(trace.nodes.size(), false);
  for (const LazyStorage* s = trace.first_pending(); s != nullptr; s = s->next) live[s->ref.node] = true;
  std::vector<uint32_t> found;
  for (size_t i = trace.nodes.size(); i-- > 0;) {
    if (!live[i]) continue;
    found.push_back(static_cast<uint32_t>(i));
    const Node& node = trace.nodes[i];
    for (size_t k = 0; k < node.instance->operands.size(); ++k) {
      const Ref input = trace.inputs[node.first_input + k];
      if (!input.leaf()) live[input.node] = true;
    }
  }
  std::reverse(found.begin(), found.end());
  return found;
}

// What was recorded, taken out of the trace and given back to it part by part.
class Parts {
 public:
  Parts(Trace& trace, const std::vector<uint32_t>& live, size_t max_operations) : trace_(trace) {
    nodes_.swap(trace.nodes);
    inputs_.swap(trace.inputs);
    numbers_.swap(trace.numbers);
    leaves_.swap(trace.leaves);
    while (LazyStorage* s = trace.first_pending()) {
      trace.unlink(*s);
      pending_.push_back(s);
    }
    std::stable_sort(pending_.begin(), pending_.end(),
                     [](const auto* one, const auto* other) { return one->ref.node < other->ref.node; });
    live_ = live;
    now_.resize(nodes_.size());
    places_.resize(leaves_.size());
    find_last_reads();
    find_ends(max_operations);
    trace.clear();
  }

  size_t count() const { return ends_.size(); }

  // Puts the next part into the trace, with the storages that wait for its values, and returns tensors of the
  // values that later parts read.
  std::vector<at::Tensor> add_next() {
    const size_t begin = begin_, end = ends_[part_++];
    add(begin, end);
    std::vector<at::Tensor> needed;
    crossing_.clear();
    for (size_t i = begin; i < end; ++i)
      for (const auto& [output, last] : last_reads_[live_[i]]) {
        if (last < end) continue;
        crossing_.push_back({live_[i], output});
        needed.push_back(make_tensor(trace_.result(now_[live_[i]], output)));
      }
    return needed;
  }

  // Keeps the data of these values for later parts, after the part was cut.
  void keep(const std::vector<at::Tensor>& needed) {
    for (size_t i = 0; i < needed.size(); ++i) {
      const auto [node, output] = crossing_[i];
      data_[{node, output}] = LazyStorage::of(needed[i])->data;
    }
  }

  // Leaves the values that no later part reads to the trace.
  void release() {
    for (const auto& [node, output] : read_last_) {
      if (output == Ref::kLeaf)
        leaves_[node].reset();
      else
        data_.erase({node, output});
    }
    read_last_.clear();
  }

  // Puts all the rest into the trace, after the latest part.
  void add_rest() { add(begin_, live_.size()); }

  // The storages that wait for values of later parts lose them.
  void lose_rest(const std::string& cause) {
    const auto shared = std::make_shared<const std::string>(cause);
    for (; next_pending_ < pending_.size(); ++next_pending_) {
      LazyStorage& storage = *pending_[next_pending_];
      storage.state = LazyStorage::State::kLost;
      storage.lost = shared;
      storage.strides.clear();
    }
  }

 private:
  // A node before the cut, and which of its results; a leaf, as in Ref.
  using Value = std::pair<uint32_t, uint16_t>;

  // Notes for each value and leaf the place in live_ of the last node that reads it.
  void find_last_reads() {
    last_reads_.resize(nodes_.size());
    last_read_of_leaf_.assign(leaves_.size(), 0);
    for (size_t i = 0; i < live_.size(); ++i) {
      const Node& node = nodes_[live_[i]];
      for (size_t k = 0; k < node.instance->operands.size(); ++k) {
        const Ref input = inputs_[node.first_input + k];
        if (input.leaf())
          last_read_of_leaf_[input.node] = i;
        else
          last_reads_[input.node][input.output] = i;
      }
    }
  }

  // Chooses where the parts end: within the last quarter of what a part may have, where the fewest values are
  // read later.
  void find_ends(size_t max_operations) {
    std::vector<int64_t> change(live_.size() + 1, 0);
    for (size_t i = 0; i < live_.size(); ++i)
      for (const auto& [output, last] : last_reads_[live_[i]]) {
        ++change[i + 1];
        --change[last + 1];
      }
    std::vector<int64_t> crossing(live_.size() + 1, 0);  // the number of values that an end there keeps
    for (size_t i = 1; i <= live_.size(); ++i) crossing[i] = crossing[i - 1] + change[i];
    size_t begin = 0;
    while (live_.size() - begin > max_operations) {
      size_t best = begin + max_operations;
      for (size_t end = best; end > begin + max_operations * 3 / 4; --end)
        if (crossing[end] < crossing[best]) best = end;
      ends_.push_back(best);
      begin = best;
    }
    ends_.push_back(live_.size());
  }

  // Puts live nodes [begin, end) into the trace.
  void add(size_t begin, size_t end) {
    if (trace_.nodes.empty()) note_first_record();
    for (size_t i = begin; i < end; ++i) {
      const Node& node = nodes_[live_[i]];
      Node& made = trace_.nodes.emplace_back(node);
      made.first_input = static_cast<uint32_t>(trace_.inputs.size());
      made.first_number = static_cast<uint32_t>(trace_.numbers.size());
      now_[live_[i]] = static_cast<uint32_t>(trace_.nodes.size() - 1);
      for (size_t k = 0; k < node.instance->operands.size(); ++k)
        trace_.inputs.push_back(operand(inputs_[node.first_input + k], i));
      const auto numbers = numbers_.begin() + node.first_number;
      trace_.numbers.insert(trace_.numbers.end(), numbers,
                            numbers + static_cast<std::ptrdiff_t>(node.instance->slots.size()));
    }
    begin_ = end;
    const size_t last = end == 0 ? 0 : live_[end - 1];
    for (; next_pending_ < pending_.size() && pending_[next_pending_]->ref.node <= last; ++next_pending_)
      link(*pending_[next_pending_]);
  }

  // Returns the operand of the node at place i of live_, as the trace knows it now.
  Ref operand(Ref was, size_t i) {
    if (was.leaf()) {
      DataPtr& leaf = leaves_[was.node];
      const Ref now = trace_.leaf(leaf).ref;
      places_[was.node] = {trace_.number, now.node};
      if (last_read_of_leaf_[was.node] == i) read_last_.push_back({was.node, Ref::kLeaf});
      return now;
    }
    const auto found = data_.find({was.node, was.output});
    if (found == data_.end()) return {now_[was.node], was.output};
    if (last_reads_[was.node].at(was.output) == i) read_last_.push_back({was.node, was.output});
    return trace_.leaf(found->second).ref;
  }

  void link(LazyStorage& storage) {
    storage.ref.node = now_[storage.ref.node];
    // The data that the new value replaces gives it its memory if this part reads it.
    if (storage.replaced_leaf != LazyStorage::kNoLeaf) {
      const auto [trace, place] = places_[storage.replaced_leaf];
      storage.replaced_leaf = trace == trace_.number ? place : LazyStorage::kNoLeaf;
    }
    trace_.link(storage);
  }

  Trace& trace_;
  std::vector<Node> nodes_;
  std::vector<Ref> inputs_;
  std::vector<Number> numbers_;
  std::vector<DataPtr> leaves_;
  std::vector<uint32_t> live_;                          // nodes
  std::vector<LazyStorage*> pending_;                   // in the order of their nodes
  std::vector<std::map<uint16_t, size_t>> last_reads_;  // [node]: by result
  std::vector<size_t> last_read_of_leaf_;               // [leaf]
  std::vector<size_t> ends_;                            // of the parts, places in live_
  size_t part_ = 0, begin_ = 0, next_pending_ = 0;      // what comes next
  std::vector<uint32_t> now_;                           // [node]: its number in the trace
  std::vector<std::pair<uint64_t, uint32_t>> places_;   // [leaf]: in which trace it was last, and where
  std::map<Value, DataPtr> data_;                       // of earlier parts, for later ones
  std::vector<Value> crossing_;                         // of the current part, for later ones
  std::vector<Value> read_last_;                        // by the current part; leaves too
};

}  // namespace

void cut_in_parts(std::string_view what, size_t max_operations) {
  Trace& trace = Trace::get();
  const std::vector<uint32_t> live = live_nodes(trace);
  if (live.size() <= max_operations || Watch::current() != nullptr || runtime().ahead) return cut(what);
  const KeptInstances all;
  Parts parts(trace, live, max_operations);
  for (size_t i = 0; i < parts.count(); ++i) {
    const std::vector<at::Tensor> needed = parts.add_next();
    parts.release();
    try {
      cut(base::str(what, ", part ", i + 1));
    } catch (const WrongValue&) {
      parts.add_rest();  // an earlier program's fault: what was recorded is still there
      throw;
    } catch (const std::exception& error) {
      parts.lose_rest(error.what());
      throw;
    }
    parts.keep(needed);
  }
}

}  // namespace sluice::device
