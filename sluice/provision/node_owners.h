// Which queue entry made a node: found in O(log entries), because a project's list may have thousands of
// both.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/google/tpu.h"

namespace sluice::provision {

// Threads: one at a time.
class NodeOwners {
 public:
  // The queue need not outlive this. If two entries claim a node, the earlier one has it.
  explicit NodeOwners(const std::vector<google::QueuedResource>& queue);
  NodeOwners(const NodeOwners&) = delete;
  NodeOwners& operator=(const NodeOwners&) = delete;

  // Returns the place of the node's entry in the queue; nothing if no entry made it.
  std::optional<std::size_t> of(const google::Node& node) const;
  // Returns the number of comparisons of names up to now.
  std::size_t comparisons() const { return comparisons_; }

 private:
  using Key = std::pair<std::string, std::string>;  // a zone, and an id there
  struct Less {
    std::size_t* count;
    bool operator()(const Key& a, const Key& b) const { return ++*count, a < b; }
  };
  using Places = std::map<Key, std::size_t, Less>;

  mutable std::size_t comparisons_ = 0;
  Places entries_{Less{&comparisons_}};  // by the entry's own id
  Places nodes_{Less{&comparisons_}};    // by the ids of the nodes that the entries name
};

}  // namespace sluice::provision
