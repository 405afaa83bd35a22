#include "sluice/provision/node_owners.h"

namespace sluice::provision {

NodeOwners::NodeOwners(const std::vector<google::QueuedResource>& queue) {
  for (std::size_t i = 0; i < queue.size(); ++i) {
    entries_.try_emplace({queue[i].zone, queue[i].id}, i);
    for (const google::QueuedNode& node : queue[i].nodes) nodes_.try_emplace({queue[i].zone, node.id}, i);
  }
}

std::optional<std::size_t> NodeOwners::of(const google::Node& node) const {
  const bool says = !node.queued_resource.empty();
  const Places& places = says ? entries_ : nodes_;
  const auto found = places.find({node.zone, says ? node.queued_resource : node.id});
  return found == places.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace sluice::provision
